// What else could stand in a word's place: a menu below the word.

import {element} from "./playground.result.js";
import {percent} from "./playground.words.js";

export class Menu {
  /** `root` is a popover with the role of a menu. */
  constructor(root) {
    Object.assign(this, {root, anchor: null, controller: null});
    root.addEventListener("keydown", event => this.#key(event));
    root.addEventListener("toggle", event => event.newState === "closed" && this.#closed());
  }

  /**
   * Open below a word: `load(signal)` finds what else there is, as {word, rest, probability, current}, and `pick` is given the one
   * that is chosen. The menu says what went wrong if there is an error.
   */
  async open(anchor, load, pick) {
    this.close();
    this.anchor = anchor;
    const controller = this.controller = new AbortController();
    anchor.setAttribute("aria-expanded", "true");
    this.#fill(element("p", {role: "presentation"}, "Looking …"));
    this.root.showPopover();
    this.#place();
    this.root.focus();
    try {
      const found = await load(controller.signal);
      if (controller.signal.aborted) return;
      this.#fill(...(found.length ? found.map(one => this.#item(one, pick)) : [element("p", {}, "There is nothing else.")]));
      this.#items()[0]?.focus();
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#fill(element("p", {role: "alert"}, error.message));
    }
    this.#place();
  }

  close() {
    if (this.root.matches(":popover-open")) this.root.hidePopover();
    this.#closed();
  }

  #closed() {  // the browser gives the focus back to the word
    this.controller?.abort();
    this.anchor?.setAttribute("aria-expanded", "false");
    this.anchor = null;
  }

  #fill(...content) {
    this.root.replaceChildren(...content);
  }

  #items() {
    return [...this.root.querySelectorAll("button")];
  }

  #item(one, pick) {
    const item = element(
      "button",
      {type: "button", role: "menuitemradio", tabindex: "-1", "aria-checked": String(one.current)},
      element("b", {dir: "auto"}, one.word || "(ends here)"),
      element("small", {}, percent(one.probability)),
      element("i", {dir: "auto"}, one.rest.trim() || "\u00a0"),
    );
    item.addEventListener("click", () => { this.close(); pick(one); });
    return item;
  }

  #place() {
    const at = this.anchor.getBoundingClientRect(), own = this.root.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - own.width - 8));
    const above = at.bottom + own.height + 8 > innerHeight && at.top > own.height + 8;
    this.root.style.left = `${left + scrollX}px`;
    this.root.style.top = `${(above ? at.top - own.height - 6 : at.bottom + 6) + scrollY}px`;
  }

  #key(event) {
    const items = this.#items(), here = items.indexOf(document.activeElement);
    const next = {
      ArrowDown: (here + 1) % items.length,
      ArrowUp: (here < 1 ? items.length : here) - 1,
      Home: 0,
      End: items.length - 1,
    }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      items[next]?.focus();
    } else if (event.key === "Tab" || event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
  }
}
