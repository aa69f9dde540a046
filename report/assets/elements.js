// What the pages have in common: elements, numbers and the tokens of lines. The program of a page is
// some of the files in this folder as one script.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

/** The most rows of a function that are shown at once. */
const MOST_ROWS = 400;

// ---- Elements ----

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// ---- Texts ----

const number = new Intl.NumberFormat("en");
const count = (n, one, many = one + "s") => `${number.format(n)} ${n === 1 ? one : many}`;

// ---- The parts of lines ----

// The characters of names are those of the lexer (ir/src/text/lexer.rs). A dot ends a name: `%t.0` is
// a field of `%t`. `%#57` is a variable without a name.
const NAME = String.raw`(?:"(?:\\.|[^"\\])*"|#[\d:]+|[A-Za-z0-9_$]+)`;
const TOKEN = new RegExp(
  String.raw`(?<string>"(?:\\.|[^"\\])*")|(?<name>%${NAME})|(?<global>@${NAME})` +
    String.raw`|(?<word>\b(?:let|def|private|declare|if|else|then|fn|dataflow)\b)|(?<op>\b[A-Za-z_][\w.]*(?=\())|(?<other>[\w.]+|\s+|.)`,
  "gsu",
);

/** The tokens of a text, each with its kind, for its colours. */
function tokens(text) {
  return Array.from(text.matchAll(TOKEN), (match) => {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    return { kind, text: match[0] };
  });
}

/** Parts of a text that an other text does not have: all between what is the same at both ends. */
function markedPart(mine, other) {
  let start = 0;
  while (start < mine.length && start < other.length && mine[start].text === other[start].text) start++;
  let end = 0;
  const room = Math.min(mine.length, other.length) - start;
  while (end < room && mine[mine.length - 1 - end].text === other[other.length - 1 - end].text) end++;
  return [start, mine.length - end];
}

/** A token in the colour of its kind. */
function coloured({ kind, text }) {
  const colour = { string: "t-text", op: "t-op", word: "t-word" }[kind];
  return colour ? make("span", { class: colour }, text) : text;
}

/** A button that builds the next items, at most `most` at once, and goes when all are built. */
function moreButton(items, most, build, one, many) {
  let built = 0;
  const more = make("button", { type: "button", class: "more-rows" });
  const next = () => {
    build(items.slice(built, built + most));
    built = Math.min(items.length, built + most);
    const left = items.length - built;
    if (left > 0) more.textContent = `Show ${number.format(Math.min(most, left))} of ${count(left, one, many)}`;
    else more.remove();
  };
  more.addEventListener("click", next);
  return { more, next, isBuilt: () => built > 0 };
}

// ---- Facts and commands ----

const factList = (facts) => make("dl", null, ...facts.flatMap(([name, value]) => [make("dt", null, name), make("dd", null, value)]));

/** A text under a heading, with a button that copies it; nothing if the text is empty. */
function copyable(heading, text) {
  if (!text) return [];
  const pre = make("pre", null, text);
  const copy = async (event) => {
    const button = event.currentTarget;
    try {
      // A frame may not be allowed to. Asking would write to the console.
      if (document.featurePolicy?.allowsFeature("clipboard-write") === false) throw new Error("not allowed");
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(pre);
    }
  };
  return [make("div", { class: "row" }, make("h3", null, heading), make("button", { type: "button", onclick: copy }, "copy")), pre];
}
