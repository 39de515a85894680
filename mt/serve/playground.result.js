// The translation on the page: words that can be hovered, reached by keys and clicked, the marks in the text they belong to, and matrices.

import {doubtOf, gridOf, linksOf, percent, wordsOf} from "./playground.words.js";

/** An element with attributes and content; content that is a string is text, whatever it looks like. */
export function element(name, attributes = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...content);
  return made;
}

/** Sentences of the server with what the page needs: words of both sides, what looks at what, where the text has them. */
export function prepared(source, sentences) {
  let from = 0;
  return sentences.map(sentence => {
    const at = source.indexOf(sentence.source, from);
    if (at >= 0) from = at + sentence.source.length;
    const words = wordsOf(sentence.text, sentence.tokens ?? []);
    const sources = wordsOf(sentence.source, sentence.source_tokens ?? []);
    return {...sentence, at, words, sources, grid: gridOf(words, sources, sentence.alignment ?? [])};
  });
}

export class Result {
  /**
   * `root` holds the translation, `mirror` the text again, below the field; `open(element, sentence, word)` is called for a word, and
   * `isCurrent()` tells whether the translation is that of the text.
   */
  constructor(root, mirror, {open, isCurrent}) {
    Object.assign(this, {root, mirror, open, isCurrent, source: "", sentences: [], elements: [], places: new WeakMap()});
    root.addEventListener("mouseover", event => this.#point(event.target));
    root.addEventListener("mouseleave", () => this.#point(document.activeElement));
    root.addEventListener("focusin", event => { this.#rove(event.target); this.#point(event.target); });
    root.addEventListener("focusout", event => event.target.getAttribute("aria-expanded") === "true" || this.mark());
    root.addEventListener("click", event => {
      if (document.getSelection().isCollapsed) this.#activate(event.target);
    });
    root.addEventListener("keydown", event => this.#key(event));
  }

  /** The text as it stands in the field: it gives the field its height. */
  reflect(source) {
    this.source = source;
    this.mark();
  }

  /** Show sentences as `prepared` makes them; without any, plain text. */
  show(sentences, plain = "") {
    this.sentences = sentences;
    this.places = new WeakMap();
    this.elements = sentences.map((sentence, row) => sentence.words.map((word, column) => this.#word(sentence, word, row, column)));
    const parts = sentences.length ? sentences.flatMap((sentence, row) => this.#texts(sentence, row)) : [plain];
    this.root.replaceChildren(...parts.filter(part => part !== ""));
    this.elements.flat()[0]?.setAttribute("tabindex", "0");
  }

  /** Move the focus to a word, or the last there is before it. */
  focus(row, column) {
    const own = this.elements[row] ?? [];
    (own[column] ?? own.at(-1))?.focus();
  }

  /** Mark what belongs to a word of the translation in the text, and the other way round; without a word nothing is marked. */
  mark(row = -1, sources = [], targets = []) {
    this.root.querySelectorAll(".linked").forEach(one => one.classList.remove("linked"));
    targets.forEach(column => this.elements[row][column].classList.add("linked"));
    const sentence = this.sentences[row];
    const parts = [];
    let done = 0;
    for (const {start, end} of sentence && sentence.at >= 0 ? sources.map(place => sentence.sources[place]) : []) {
      parts.push(this.source.slice(done, sentence.at + start));
      done = sentence.at + end;
      parts.push(element("span", {class: "linked"}, this.source.slice(sentence.at + start, done)));
    }
    this.mirror.replaceChildren(...parts, `${this.source.slice(done)}\u200b`);
  }

  /** Mark what belongs to the word of the text at a place, such as that of the caret. */
  markFrom(place) {
    const row = this.sentences.findIndex(({at, source}) => at >= 0 && at <= place && place <= at + source.length);
    const sentence = this.sentences[row];
    const column = sentence?.sources.findIndex(({start, end}) => sentence.at + start <= place && place <= sentence.at + end) ?? -1;
    if (column < 0) return this.mark();
    const targets = sentence.grid.flatMap((weights, word) => (linksOf(weights).includes(column) ? [word] : []));
    return this.mark(row, [column], targets);
  }

  #word(sentence, word, row, column) {
    const from = linksOf(sentence.grid[column]).map(place => sentence.sources[place].text);
    const title = [percent(word.probability), ...(from.length ? [`from: ${from.join(" ")}`] : [])].join(", ");
    const doubt = `word doubt-${doubtOf(word.probability)}`;
    const made = element("span", {class: doubt, role: "button", tabindex: "-1", "aria-haspopup": "menu", "aria-expanded": "false", title}, word.text);
    this.places.set(made, {row, column});
    return made;
  }

  #texts(sentence, row) {
    const parts = [sentence.before ?? ""];
    let done = 0;
    sentence.words.forEach(({start, end}, column) => {
      parts.push(sentence.text.slice(done, start), this.elements[row][column]);
      done = end;
    });
    return [...parts, sentence.text.slice(done)];
  }

  #point(target) {
    const place = this.places.get(target);
    if (place && this.isCurrent()) this.mark(place.row, linksOf(this.sentences[place.row].grid[place.column]), [place.column]);
    else this.mark();
  }

  #rove(target) {
    if (!this.places.has(target)) return;
    this.root.querySelectorAll('[tabindex="0"]').forEach(one => one.setAttribute("tabindex", "-1"));
    target.setAttribute("tabindex", "0");
  }

  #activate(target) {
    const place = this.places.get(target);
    if (place) this.open(target, place.row, place.column);
  }

  #key(event) {
    const place = this.places.get(event.target);
    if (!place || event.altKey || event.ctrlKey || event.metaKey) return;
    const all = this.elements.flat(), here = all.indexOf(event.target);
    const forwards = this.root.matches(":dir(rtl)") ? -1 : 1;
    const next = {
      ArrowRight: () => all[here + forwards],
      ArrowLeft: () => all[here - forwards],
      ArrowDown: () => this.elements.slice(place.row + 1).flat()[0],
      ArrowUp: () => this.elements.slice(0, place.row).findLast(own => own.length)?.[0],
      Home: () => all[0],
      End: () => all.at(-1),
    }[event.key];
    if (next) {
      event.preventDefault();
      next()?.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#activate(event.target);
    }
  }
}

/** What each word of a sentence's translation looks at, as a table. */
export function matrix({words, sources, grid}) {
  const heads = sources.map(({text}) => element("th", {scope: "col"}, element("span", {dir: "auto"}, text)));
  const sides = words.map(({text}) => element("th", {scope: "row", dir: "auto", title: text}, text));
  const rows = grid.map((weights, row) => {
    const cells = weights.map((weight, column) => {
      const cell = element("td", {title: `${words[row].text} ← ${sources[column].text}: ${percent(weight)}`});
      cell.style.setProperty("--share", Math.min(1, weight).toFixed(2));
      const light = on => [heads[column], sides[row]].forEach(head => head.classList.toggle("lit", on));
      cell.addEventListener("mouseenter", () => light(true));
      cell.addEventListener("mouseleave", () => light(false));
      return cell;
    });
    return element("tr", {}, sides[row], ...cells);
  });
  const table = element("table", {}, element("thead", {}, element("tr", {}, element("td"), ...heads)), element("tbody", {}, ...rows));
  return element("div", {class: "matrix", role: "group", tabindex: "0", "aria-label": `Attention of: ${words.map(({text}) => text).join(" ")}`}, table);
}
