// The page of differences, after elements.js. `data.differences` is described in
// `Differences::to_json` (ir/src/diff).

const KINDS = ["changed", "added", "removed"];
const shown = new Set(KINDS);

/** A name as programs spell it. */
const spelled = (sigil, text) => (/^[A-Za-z0-9_$]+$/.test(text) ? sigil + text : `${sigil}"${text.replace(/[\\"]/g, "\\$&")}"`);

/** The name of something on the left, and on the right if it has another one there. */
function namesOf(sigil, { left, right }) {
  const names = [...new Set([left, right].filter((name) => name !== undefined))].map((name) => spelled(sigil, name));
  return names.length > 0 ? names.join(" → ") : sigil === "@" ? "a function" : "a variable without a name";
}

/** The part of a change in words. */
function partOf({ part, index, name }) {
  if (part === "operand") return `operand ${index}`;
  if (part === "attribute") return `attribute ${name}`;
  if (part === "metadata") return `#[${name}]`;
  return { name: "name", "result-type": "result type", position: "position" }[part] ?? part;
}

/** The place of an item: its name, and the block that it is in. */
function placeOf(item) {
  const head = { parameter: "parameter ", binding: "", expression: "expression", result: "result" }[item.item];
  const isNamed = item.item === "parameter" || item.item === "binding";
  return `${head}${isNamed ? namesOf("%", item) : ""}${item.place ? ` in ${item.place}` : ""}`;
}

/** The rows of a function or of the modules: kind, place, part, and the text on each side. */
function rowsOf(of) {
  const rows = [];
  const changed = (place, changes) => changes.forEach((change, i) => rows.push({
    kind: "changed", place, isFirst: i === 0, part: partOf(change), left: change.left, right: change.right, note: change.note,
  }));
  const whole = (kind, place, text, nested) => rows.push({
    kind, place, isFirst: true, part: kind, [kind === "added" ? "right" : "left"]: text,
    note: nested ? `with ${count(nested, "binding")}` : undefined,
  });
  if (of.kind !== "changed") whole(of.kind, "the function", namesOf("@", of), of.bindings);
  changed("signature", of.changes);
  for (const item of of.items) {
    if (item.kind === "changed") changed(placeOf(item), item.changes);
    else whole(item.kind, placeOf(item), item.text, item.nested);
  }
  return rows;
}

const { module, functions } = data.differences;
const parts = [
  ...(module.length > 0 ? [{ name: "The modules", kind: "changed", changes: module, items: [] }] : []),
  ...functions.map((f) => ({ name: namesOf("@", f), ...f })),
].map((part) => ({ ...part, rows: rowsOf(part) }));

/** A text of one side; the tokens that the other side does not have are marked. */
function sideOf(text, other) {
  const all = tokens(text);
  const [from, to] = other === undefined ? [0, 0] : markedPart(all, tokens(other));
  const pieces = document.createDocumentFragment();
  let into = pieces;
  all.forEach((token, i) => {
    if (i === from && from < to) into = pieces.appendChild(make("mark"));
    if (i === to) into = pieces;
    into.append(coloured(token));
  });
  return pieces;
}

function rowElement({ kind, place, isFirst, part, left, right, note }) {
  const side = (text, other, name) => text === undefined
    ? make("td", { class: "line void" })
    : make("td", { class: `line ${name}` }, sideOf(text, other));
  const about = make("td", { class: "about" }, part, note ? make("span", { class: "note" }, note) : null);
  return make("tr", { class: `${kind}${isFirst ? " first" : ""}` },
    make("th", { scope: "row", class: isFirst ? null : "again" }, place), about, side(left, right, "old"), side(right, left, "new"));
}

/** The texts of a row in which the search looks. */
const isFound = (row, text) => text === "" || [row.place, row.part, row.left, row.right, row.note].some((t) => t?.toLowerCase().includes(text));

let text = "";
let at = -1;

/** The rows of a part that the kinds and the search leave. Rows of a part whose name is found all stay. */
function chosenRows(part) {
  const isNamed = part.name.toLowerCase().includes(text);
  return part.rows.filter((row) => shown.has(row.kind) && (isNamed || isFound(row, text)));
}

function partElement(part, rows, isOpen) {
  const amounts = KINDS.map((kind) => [kind, rows.filter((row) => row.kind === kind && row.isFirst).length]).filter(([, n]) => n > 0);
  const says = amounts.map(([kind, n]) => `${number.format(n)} ${kind}`).join(", ");
  const element = make("details", { class: "function" },
    make("summary", null, make("span", { class: "name" }, part.name), make("span", { class: "amount" }, says)));
  const body = make("tbody");
  const head = make("tr", null, ...["where", "what", data.left, data.right].map((name) => make("th", { scope: "col" }, name)));
  const table = make("table", { class: "diff parts", "aria-label": `Differences of ${part.name}` }, make("thead", null, head), body);
  // The first row of a listing names its place, although it goes on with an item.
  const build = (next) => body.append(...next.map((row, i) => rowElement(i === 0 ? { ...row, isFirst: true } : row)));
  const { more, next, isBuilt } = moreButton(rows, MOST_ROWS, build, "more row");
  element.addEventListener("toggle", () => {
    if (element.open && !isBuilt()) next();
  });
  element.append(make("div", { class: "rows", tabindex: 0, role: "region", "aria-label": `Differences of ${part.name}` }, table), more);
  if (isOpen) {
    element.open = true;
    next();
  }
  return element;
}

function showParts() {
  const list = parts.map((part) => [part, chosenRows(part)]).filter(([, rows]) => rows.length > 0);
  let opened = 0;
  const elements = list.map(([part, rows]) => {
    // The first functions are open, as far as they are short.
    const isOpen = opened < MOST_ROWS;
    opened += rows.length;
    return partElement(part, rows, isOpen);
  });
  const none = parts.length === 0 ? "The programs are equal up to the names of their variables." : "No difference has this kind and text.";
  $("differences").replaceChildren(...(elements.length > 0 ? elements : [make("p", { class: "empty" }, none)]));
  if (data.left_out > 0) $("differences").append(make("p", { class: "dim" }, `${count(data.left_out, "more difference")} are not in this page.`));
  at = -1;
  const rows = list.reduce((sum, [, rows]) => sum + rows.length, 0);
  $("announcement").textContent = `${count(rows, "row")} in ${count(list.length, "function")}`;
}

/** Goes to the next function, or to the previous one, and opens it. */
function toFunction(by) {
  const all = [...document.querySelectorAll("details.function")];
  const to = all[at + by];
  if (!to) return;
  at += by;
  to.open = true;
  to.querySelector("summary").focus();
  to.scrollIntoView({ block: "start" });
}

function showKinds() {
  $("kinds").append(...KINDS.map((kind) => {
    const n = parts.reduce((sum, part) => sum + part.rows.filter((row) => row.kind === kind && row.isFirst).length, 0);
    const press = (event) => {
      if (!shown.delete(kind)) shown.add(kind);
      event.currentTarget.setAttribute("aria-pressed", shown.has(kind));
      showParts();
    };
    return make("button", { type: "button", class: `kind ${kind}`, "aria-pressed": "true", disabled: n === 0, onclick: press }, `${number.format(n)} ${kind}`);
  }));
}

$("summary").append(make("b", null, count(data.count, "difference")), " in ", make("b", null, count(functions.length, "function")));
$("run").append(
  make("h2", { id: "run-title" }, "The programs"),
  make("div", null, factList(data.facts)),
  make("div", null, ...copyable("The command that makes this page", data.command)));
$("query").addEventListener("input", () => {
  text = $("query").value.trim().toLowerCase();
  showParts();
});
$("query").addEventListener("keydown", (event) => {
  if (event.key === "Escape") $("query").blur();
});
$("previous").addEventListener("click", () => toFunction(-1));
$("next").addEventListener("click", () => toFunction(1));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input")) return;
  if (event.key === "n") toFunction(1);
  else if (event.key === "p") toFunction(-1);
  else if (event.key === "/") $("query").focus();
  else return;
  event.preventDefault();
});
showKinds();
showParts();
