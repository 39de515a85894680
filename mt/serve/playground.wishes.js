// What the reader wants besides the text: a target, a glossary, how to search.

const byId = id => document.getElementById(id);

/** The terms of the glossary, and what is wrong with its lines. */
function glossary() {
  const terms = [], wrong = [];
  byId("glossary").value.split("\n").forEach((line, number) => {
    if (!line.trim() || line.trimStart().startsWith("#")) return;
    const [, source, target] = /^(.+?)\s*(?:\t|=)\s*(.+)$/u.exec(line.trim()) ?? [];
    if (target) terms.push([source, target]);
    else wrong.push(number + 1);
  });
  return {terms, wrong};
}

/** What every request about text says, besides the text. */
export function wishes() {
  const {terms} = glossary();
  return {
    ...(byId("target").hidden ? {} : {target: byId("target").value}),
    ...(terms.length ? {glossary: terms} : {}),
  };
}

/** How the server is to search, as far as the reader said. */
export function search() {
  const number = id => (byId(id).value === "" ? {} : {[id.replace("-", "_")]: byId(id).valueAsNumber});
  return {...number("n-best"), ...number("beam"), ...number("length-penalty"), format: byId("format").value};
}

/** All that decides the translation of a sentence, as one name. */
export const settings = source => JSON.stringify([source, wishes(), byId("format").value]);

/** Say how many terms there are, and which lines are none. */
export function readGlossary() {
  const {terms, wrong} = glossary();
  byId("glossary-count").textContent = terms.length ? `${terms.length} ${terms.length === 1 ? "term" : "terms"}` : "terms that are to be translated as you say";
  byId("glossary-said").textContent = wrong.length
    ? `Line ${wrong.join(", ")}: needs a term, “=”, and its translation.`
    : "Kept in this browser; lines that begin with # are left out.";
  byId("glossary-said").classList.toggle("bad", wrong.length > 0);
}
