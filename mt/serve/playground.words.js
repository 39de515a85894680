// From the tokens of a sentence to its words: what can be clicked, how probable it is, what it looks at. No page in here.

const SPACELESS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const LETTER = /[\p{L}\p{M}\p{N}'’\-]/u;
const SPACE = /^[\s\u2581]$/u;
const CLEAR = 0.5;  // of the most that a word looks at: what else it is said to belong to
const LEAST = 0.1;  // of all attention: less is no link

/** Whether two characters next to each other are of one word. */
export const sticks = (one, other) => LETTER.test(one) && LETTER.test(other) && !SPACELESS.test(one) && !SPACELESS.test(other);

/**
 * Tokens with offsets in code points as words: what touches is one word, but for punctuation and scripts without spaces.
 * A word has its text, its place in the text as JavaScript counts, its tokens, and its probability: the product of theirs.
 */
export function wordsOf(text, tokens) {
  const characters = [...text];
  const units = [0];
  for (const character of characters) units.push(units.at(-1) + character.length);
  const found = [];
  tokens.forEach((token, place) => {
    let start = Math.max(token.start, found.at(-1)?.last ?? 0), end = Math.min(token.end, characters.length);
    while (start < end && SPACE.test(characters[start])) start++;
    while (end > start && SPACE.test(characters[end - 1])) end--;
    const before = found.at(-1);
    const touches = before && before.last === start;
    if (start < end && !(touches && sticks(characters[start - 1], characters[start]))) {
      found.push({first: start, last: end, tokens: [place], probability: token.probability ?? 1});
    } else if (before) {  // more of a word; or a token without a character of its own, such as a byte of one
      before.last = Math.max(before.last, end);
      before.tokens.push(place);
      before.probability *= token.probability ?? 1;
    }
  });
  return found.map(({first, last, tokens: own, probability}) => (
    {start: units[first], end: units[last], text: characters.slice(first, last).join(""), tokens: own, probability}
  ));
}

/** How much each word of the translation looks at each word of the text: a row for each word of the translation. */
export function gridOf(target, source, alignment) {
  const owner = words => new Map(words.flatMap((word, place) => word.tokens.map(token => [token, place])));
  const [rows, columns] = [owner(target), owner(source)];
  const grid = target.map(() => source.map(() => 0));
  for (const [from, to, weight] of alignment) {
    const row = rows.get(to), column = columns.get(from);
    if (row !== undefined && column !== undefined) grid[row][column] += weight / target[row].tokens.length;
  }
  return grid;
}

/** The places in a row, or a column, that are clearly looked at. */
export function linksOf(weights) {
  const most = Math.max(...weights);
  return weights.flatMap((weight, place) => (weight >= LEAST && weight >= CLEAR * most ? [place] : []));
}

/** 0 for a word that is probable, to 3 for one that is hardly more than a guess. */
export const doubtOf = probability => [0.8, 0.5, 0.2].filter(least => probability < least).length;

/** A probability to be read. */
export const percent = probability => (probability < 0.01 ? "under 1 %" : `${Math.round(100 * probability)} %`);

/**
 * What a whole translation has after `prefix`: a word (`current` if it is the one that stood there), and the rest.
 * Nothing where it goes on with the last word of the prefix, as a model may that is asked for pieces.
 */
export function continued(whole, prefix, word) {
  const points = [...whole], old = [...word];
  const inside = place => place > 0 && place < points.length && sticks(points[place - 1], points[place]);
  let start = [...prefix.trimEnd()].length;
  if (!whole.startsWith(prefix.trimEnd()) || (/\s$/u.test(prefix) && inside(start))) return null;
  while (start < points.length && SPACE.test(points[start])) start++;
  const current = old.every((character, place) => points[start + place] === character) && !inside(start + old.length);
  let end = Math.min(points.length, start + (current ? old.length : 1));
  while (inside(end)) end++;
  const text = (from, to) => points.slice(from, to).join("");
  return {whole, word: text(start, end), rest: text(end), current};
}
