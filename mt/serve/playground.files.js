// Files: chosen or dropped, sent, and given back translated.

import {sendFile} from "./playground.server.js";

const ENDINGS = {xliff: ["xliff", "xlf"], po: ["po", "pot"]};
const MOST_QUERY = 14_000;  // the server reads a head of 16 kB, of which the browser needs some
const byId = id => document.getElementById(id);

/** Bytes to be read. */
function size(bytes) {
  const [unit, value] = bytes < 1e3 ? ["bytes", bytes] : bytes < 1e6 ? ["kB", bytes / 1e3] : ["MB", bytes / 1e6];
  return `${value < 10 && unit !== "bytes" ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

/** Values as the query of an address; lists as JSON, what is undefined not at all. */
function inAddress(values) {
  const said = Object.entries(values).filter(([, value]) => value !== undefined);
  return new URLSearchParams(said.map(([name, value]) => [name, Array.isArray(value) ? JSON.stringify(value) : value])).toString();
}

export class Files {
  /** `wishes` gives what else the server is to know; `refused` is told of errors. */
  constructor({wishes, refused}) {
    Object.assign(this, {wishes, refused, kinds: null, most: 0, controller: null, url: ""});
    byId("file").addEventListener("change", event => {
      this.send([...event.target.files]);
      event.target.value = "";  // the same file may be chosen again
    });
    byId("file-end").addEventListener("click", () => {
      if (this.controller) this.controller.abort();
      else byId("file-part").hidden = true;
    });
    let inside = 0;  // elements of the page that a file is dragged over
    const drag = (name, step) => addEventListener(name, event => {
      if (![...event.dataTransfer?.types ?? []].includes("Files")) return;
      event.preventDefault();
      inside = step(inside);
      byId("veil").hidden = inside <= 0;
      if (name === "drop") this.send([...event.dataTransfer.files]);
    });
    drag("dragenter", count => count + 1);
    drag("dragover", count => count);
    drag("dragleave", count => count - 1);
    drag("drop", () => 0);
  }

  /** What the server takes. */
  take(info) {
    this.most = info.limits.file_bytes;
    this.kinds = info.formats.flatMap(format => ENDINGS[format] ?? [format]);
    byId("file").accept = this.kinds.map(kind => `.${kind}`).join(",");
    byId("file-button").title = `Translate a file: ${this.kinds.join(", ")}`;
  }

  #wrong(files) {
    const [file] = files;
    if (!this.kinds) return "The server has not said yet what it takes.";
    if (this.controller) return "One file at a time: this one is still being translated.";
    if (files.length > 1) return "One file at a time.";
    if (!this.kinds.some(kind => file.name.toLowerCase().endsWith(`.${kind}`))) return `${file.name}: not one of ${this.kinds.join(", ")}.`;
    if (file.size > this.most) return `${file.name} has ${size(file.size)}; the most is ${size(this.most)}.`;
    return "";
  }

  async send(files) {
    if (!files.length) return;
    const wrong = this.#wrong(files);
    if (wrong) return this.#say(wrong, true);
    const [file] = files;
    const query = inAddress({...this.wishes(), name: file.name});
    if (query.length > MOST_QUERY) return this.#say("The glossary is too long to go with a file: shorten it, or use mt translate --glossary.", true);
    const controller = this.controller = new AbortController();
    byId("file-progress").value = 0;
    this.#working(true);
    this.#say(`Sending ${file.name}, ${size(file.size)} …`);
    const progress = share => {
      if (share < 1) byId("file-progress").value = share;
      else if (byId("file-progress").hasAttribute("value")) {
        byId("file-progress").removeAttribute("value");
        this.#say(`Translating ${file.name} …`);
      }
    };
    try {
      const blob = await sendFile(`v1/file?${query}`, file, {progress, signal: controller.signal});
      this.#give(blob, file.name);
    } catch (error) {
      const stopped = error.name === "AbortError", named = error.message.includes(file.name);
      this.#say(stopped ? "Stopped." : named ? error.message : `${file.name}: ${error.message}`, !stopped);
      this.refused(error);
    } finally {
      this.controller = null;
      this.#working(false);
    }
  }

  #working(on) {
    byId("file-progress").hidden = !on;
    byId("file-end").textContent = on ? "Stop" : "Close";
    if (on) byId("file-result").hidden = true;
  }

  #give(blob, name) {
    URL.revokeObjectURL(this.url);
    this.url = URL.createObjectURL(blob);
    const link = byId("file-result");
    Object.assign(link, {href: this.url, download: name, textContent: `Save ${name}`, hidden: false});
    this.#say(`Translated: ${name}, ${size(blob.size)}.`);
    link.click();
  }

  #say(text, bad = false) {
    byId("file-part").hidden = false;
    byId("file-said").textContent = text;
    byId("file-said").classList.toggle("bad", bad);
  }
}
