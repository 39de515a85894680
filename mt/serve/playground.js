// The page of `mt serve`: text in, translation out as one types. What is shown comes from the server, and goes in as text only.

import {Files} from "./playground.files.js";
import {Menu} from "./playground.menu.js";
import {Result, element, matrix, prepared} from "./playground.result.js";
import {Refused, ask, hasKey, keep, useKey} from "./playground.server.js";
import {readGlossary, search, settings, wishes} from "./playground.wishes.js";
import {continued} from "./playground.words.js";

const byId = id => document.getElementById(id);
const PAUSE = 300;  // ms without a key before text is sent
const AGAIN = 5;  // s before another try, where the server names none
const NO_ATTENTION = "Nothing is told of this: exported models do not tell what they look at, and of HTML only the text is shown.";
const TABLES = 50;  // sentences whose attention is drawn
const MENU = 5;  // words in a menu
const LOOK = 15;  // s between looks at the server while nothing is asked of it
const FLAGS = {
  split: "was too long for the model, and translated in parts",
  truncated: "was cut off at the length limit",
  unmet: "lacks something it was to have",
  lost: "lacks something that was to be kept",
  empty: "came out empty",
  copied: "is the same as the text",
  loop: "repeats itself",
  length: "is much longer or shorter than the text",
  unknown: "is of a text with characters that the model does not know",
  low_confidence: "is little more than a guess",
};

let info = null;  // what the server says about itself
let turn = 0;  // number of the newest text; answers to older ones are dropped
let controller = null;  // of the request that is under way
let timer = 0, checking = 0;
let until = 0;  // ms of performance.now(), before which the server is to be left alone
let shown = {source: "", sentences: [], plain: ""};
const choices = new Map();  // sentences as the reader wants them, by all that else decides them

// ---- translating ---------------------------------------------------------------------------------------------------

/** Translate once nothing is typed for a while; what is under way is of no use any more. */
function soon(pause = PAUSE) {
  turn += 1;
  controller?.abort();
  clearTimeout(timer);
  byId("result").classList.add("old");
  timer = setTimeout(translate, Math.max(pause, until - performance.now()));
}

async function translate() {
  clearTimeout(timer);
  controller?.abort();
  const mine = ++turn, text = byId("source").value, began = performance.now();
  if (!info) return start();
  if (!text.trim()) return show(text, {text: ""}, info.needs_key && !hasKey() ? "This server needs a key." : "Ready.");
  const wrong = document.querySelector("#options-part :invalid");
  if (wrong) return say(`${wrong.labels[0].textContent}: ${wrong.validationMessage}`, "bad");
  if ([...text].length > info.limits.characters) return say(`The text is too long: at most ${info.limits.characters} characters.`, "bad");
  controller = new AbortController();
  say("Translating …", "work");
  const patience = setTimeout(() => waiting(mine), 1500);
  try {
    const answer = await ask("v1/translate", {text, ...wishes(), ...search(), details: true}, controller.signal);
    until = 0;
    if (mine === turn) show(text, answer.translations[0], `Translated in ${((performance.now() - began) / 1000).toFixed(1)} s.`);
  } catch (error) {
    if (mine === turn) failed(error, translate);
  } finally {
    clearTimeout(patience);
  }
}

/** Where an answer takes long, say how many requests there are besides this one. */
async function waiting(mine) {
  const others = await ask("health").then(({queue}) => queue - 1, () => 0);
  if (mine !== turn || others < 1 || !byId("state").matches(".work")) return;
  say(`Translating … ${others} other ${others === 1 ? "request is" : "requests are"} waiting, too.`, "work");
}

/** Whether what is shown is the translation of what stands in the field. */
const isCurrent = () => byId("source").value === shown.source;

function show(source, found, said) {
  const whole = (found.sentences ?? []).map(one => (one.before ?? "") + one.text).join("");
  const fits = whole && found.text.trimEnd() === whole.trimEnd();
  const own = fits ? found.sentences.flatMap(one => choices.get(settings(one.source))?.(one) ?? [one]) : [];
  shown = {source, found, sentences: prepared(source, own), plain: found.text};
  if (own.some(one => one.chosen)) shown.plain = own.map(one => (one.before ?? "") + one.text).join("");
  result.show(shown.sentences, shown.plain);
  byId("result").classList.toggle("old", !isCurrent());
  byId("spoken").textContent = shown.plain;
  byId("copy").disabled = !shown.plain;
  remarks();
  others(found.hypotheses ?? []);
  matrices();
  say(said);
}

function remarks() {
  const short = text => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
  const which = one => (shown.sentences.length > 1 ? `The translation of “${short(one.source)}”` : "The translation");
  const flagged = shown.sentences.length ? shown.sentences : [shown.found];
  const flags = flagged.flatMap(one => (one.flags ?? []).map(flag => element("li", {}, `${which(one)} ${FLAGS[flag] ?? flag}.`)));
  if (shown.sentences.length > 1 && byId("n-best").value > 1) flags.push(element("li", {}, "Several translations are given where the text is one sentence."));
  const chosen = shown.sentences.filter(one => one.chosen).map(one => {
    const undo = element("button", {type: "button", class: "quiet", "aria-label": `Undo the choice in ${one.source}`}, "Undo");
    undo.addEventListener("click", () => { choices.delete(settings(one.chosen)); redraw(); byId("source").focus(); });
    return element("li", {class: "chosen"}, `As you chose: “${short(one.text)}” `, undo);
  });
  byId("remarks").replaceChildren(...flags, ...chosen);
  byId("remarks").hidden = !flags.length && !chosen.length;
}

function others(hypotheses) {
  byId("others").hidden = hypotheses.length < 2;
  byId("others-list").replaceChildren(...hypotheses.slice(1).map(({text, score}, place) => {
    const button = element("button", {type: "button", class: "quiet", "aria-label": `Copy translation ${place + 2}`}, "Copy");
    button.addEventListener("click", () => copy(text, button));
    return element("li", {}, element("span", {dir: "auto", lang: languageOf()}, text), element("small", {title: "score"}, score.toFixed(2)), button);
  }));
}

function matrices() {
  if (!byId("attention").open) return;
  const drawn = shown.sentences.filter(one => one.alignment?.length);
  const note = drawn.length > TABLES ? `The first ${TABLES} of ${drawn.length} sentences.` : drawn.length ? "" : shown.plain ? NO_ATTENTION : "There is no translation yet.";
  byId("matrices").replaceChildren(...drawn.slice(0, TABLES).map(matrix), ...(note ? [element("p", {class: "dim"}, note)] : []));
}

const redraw = () => show(shown.source, shown.found, "Ready.");

// ---- choosing other words ------------------------------------------------------------------------------------------

function alternatives(anchor, row, column) {
  if (!isCurrent()) return;  // another translation is on its way
  const sentence = shown.sentences[row], word = sentence.words[column], before = sentence.text.slice(0, word.start);
  const load = async signal => {
    const found = await ask("v1/alternatives", {text: sentence.source, prefix: before, n: Math.min(MENU, info.limits.beam ?? MENU), ...wishes()}, signal);
    const seen = new Set();
    return found.alternatives
      .map(({text, probability}) => ({probability, ...continued(text, before, word.text)}))
      .filter(one => one.word !== undefined && !seen.has(one.word) && seen.add(one.word));
  };
  menu.open(anchor, load, one => choose(row, column, one));
}

/**
 * Have a sentence as it goes on with the word that was chosen, which is what the menu showed: given as a prefix, so that the server says
 * all about it that it says about its own; plain text, whatever it was part of. The choice holds as long as the sentence stands in the text.
 */
async function choose(row, column, {whole, current}) {
  if (current) return;
  const mine = ++turn, sentence = shown.sentences[row], source = sentence.source, name = settings(source);
  controller?.abort();
  controller = new AbortController();
  say("Translating …", "work");
  try {
    const {beam, length_penalty} = search();
    const answer = await ask("v1/translate", {text: source, prefix: whole, ...wishes(), beam, length_penalty, details: true}, controller.signal);
    if (mine !== turn) return;
    const parts = answer.translations[0].sentences;
    choices.set(name, one => parts.map((part, place) => ({...part, before: place ? part.before : one.before, chosen: source})));
    redraw();
    result.focus(row, column);
  } catch (error) {
    if (mine === turn) failed(error, () => choose(row, column, {whole, current}));
  }
}

// ---- what the server is up to --------------------------------------------------------------------------------------

/** One line on how things are: kind "work", "wait" (it goes on by itself), "bad" (it does not) or nothing. */
function say(text, kind = "") {
  byId("state").textContent = text;
  byId("state").className = `state ${kind}`;
}

/** Say what went wrong, and try again where that may help. */
function failed(error, again) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Refused)) throw error;
  if (error.status === 401) askForKey();
  if (![0, 429, 503].includes(error.status)) return say(error.message, "bad");
  const wait = error.wait ?? AGAIN;
  say(`${error.message}. Trying again in ${wait} s.`, "wait");
  clearTimeout(timer);
  timer = setTimeout(again, 1000 * wait);
  until = performance.now() + 1000 * wait;
}

function askForKey() {
  if (byId("key-part").hidden && document.activeElement !== byId("source")) setTimeout(() => byId("key").focus());
  byId("key-part").hidden = false;
}

/** Look whether the server is there, now and then, while nothing else tells. */
async function check() {
  clearTimeout(checking);
  const before = turn, quiet = () => before === turn && !document.hidden && !byId("state").matches(".work, .bad");
  if (info && quiet()) {
    const gone = await ask("health").then(({status}) => (status === "ok" ? null : new Refused(status, 503)), error => error);
    if (quiet()) {
      if (gone?.status === 503) say("The server is shutting down, and takes no new text.", "wait");
      else if (gone) say("The server does not answer; this page goes on when it does.", "wait");
      else if (byId("state").matches(".wait") && performance.now() >= until) translate();
    }
  }
  checking = setTimeout(check, 1000 * LOOK);
}

async function start() {
  try {
    const found = await ask("v1/info");
    describe(found);
    if (found.needs_key && !hasKey()) askForKey();
    translate();
  } catch (error) {
    failed(error, start);
  }
}

const languageOf = () => (byId("target").hidden ? info?.targets[0]?.code : byId("target").value) || "";

function describe(found) {
  info = found;
  const {source, targets} = info;
  byId("model").textContent = info.model;
  byId("version").textContent = `mt ${info.version}`;
  byId("source-name").textContent = source?.name ?? "Text";
  byId("source").lang = source?.code ?? "";
  byId("target-name").textContent = targets.length === 1 ? targets[0].name || targets[0].code : "";
  byId("target").replaceChildren(...targets.map(({code, name}) => element("option", {value: code}, name || code)));
  byId("target").hidden = targets.length < 2;
  if (targets.some(({code}) => code === keep.get("target"))) byId("target").value = keep.get("target");
  if (!targets.length) byId("target-name").textContent = "Translation";
  for (const id of ["n-best", "beam"]) byId(id).max = info.limits.beam ?? "";
  files.take(info);
  direction();
  count();
}

function direction() {
  byId("result").lang = languageOf();
  const target = info.targets.find(({code}) => code === languageOf());
  if (info.source && target) document.title = `${info.source.name} → ${target.name || target.code}`;
}

function count() {
  const length = [...byId("source").value].length;
  byId("count").textContent = info ? `${length} of ${info.limits.characters} characters` : "";
  byId("count").classList.toggle("over", Boolean(info) && length > info.limits.characters);
  byId("clear").hidden = !length;
}

// ---- the rest of the page ------------------------------------------------------------------------------------------

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // no secure context, or not allowed
    const field = element("textarea", {class: "unseen", "aria-hidden": "true"});
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    button.focus();
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

function dark(on) {
  document.documentElement.dataset.theme = on ? "dark" : "light";
  byId("theme").textContent = on ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Use ${on ? "light" : "dark"} colours`);
}

const menu = new Menu(byId("menu"));
const result = new Result(byId("result"), byId("mirror"), {open: alternatives, isCurrent});
const files = new Files({
  wishes: () => {
    const {beam, length_penalty} = search();
    return {...wishes(), beam, length_penalty};
  },
  refused: error => error.status === 401 && askForKey(),
});

const scheme = matchMedia("(prefers-color-scheme: dark)");
dark(keep.get("theme") ? keep.get("theme") === "dark" : scheme.matches);
scheme.addEventListener("change", () => keep.get("theme") || dark(scheme.matches));
byId("theme").addEventListener("click", () => {
  dark(document.documentElement.dataset.theme !== "dark");
  keep.set("theme", document.documentElement.dataset.theme);
});

byId("source").addEventListener("input", () => {
  menu.close();
  result.reflect(byId("source").value);
  count();
  soon();
});
byId("source").addEventListener("keydown", event => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  translate();
});
document.addEventListener("selectionchange", () => {
  if (document.activeElement === byId("source") && isCurrent()) result.markFrom(byId("source").selectionStart);
});
byId("source").addEventListener("blur", () => result.mark());
byId("clear").addEventListener("click", () => {
  byId("source").value = "";
  byId("source").dispatchEvent(new Event("input"));
  byId("source").focus();
});
byId("copy").addEventListener("click", () => copy(shown.plain, byId("copy")));
byId("target").addEventListener("change", () => {
  keep.set("target", byId("target").value);
  direction();
  soon(0);
});
byId("shade").checked = keep.get("shade") === "on";
const shade = () => {
  byId("result").classList.toggle("shaded", byId("shade").checked);
  byId("legend").hidden = !byId("shade").checked;
};
byId("shade").addEventListener("change", () => {
  keep.set("shade", byId("shade").checked ? "on" : "off");
  shade();
});
byId("attention").addEventListener("toggle", matrices);
byId("glossary").value = keep.get("glossary");
byId("glossary").addEventListener("input", () => {
  keep.set("glossary", byId("glossary").value);
  readGlossary();
  soon();
});
byId("options-part").addEventListener("input", () => soon());
byId("key-part").addEventListener("submit", event => {
  event.preventDefault();
  useKey(byId("key").value);
  byId("key-part").hidden = true;
  byId("source").focus();
  start();
});
addEventListener("online", check);
document.addEventListener("visibilitychange", check);

shade();
readGlossary();
result.reflect(byId("source").value);
start();
check();
