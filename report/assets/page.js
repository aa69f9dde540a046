// ---- Part 5: the run ----

function showRun() {
  $("run").replaceChildren(
    make("h2", { id: "run-title" }, "The run"),
    make("div", { class: "memory" }, make("h3", null, "Memory of the program"), chart(), factList(data.facts)),
    make("div", null, ...copyable("Pipeline", data.pipeline), ...copyable("The command that makes this page", data.command)),
  );
}

const memory = leaves.length ? [[-1, runs[leaves[0]].bytes?.[0] ?? 0], ...leaves.map((i) => [i, runs[i].bytes?.[1] ?? 0])] : [];

function chart() {
  if (memory.length < 2) return make("p", { class: "empty" }, "No pass ran.");
  const [WIDTH, HEIGHT] = [600, 132];
  const sizes = memory.map(([, size]) => size);
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
  const x = (i) => (i * WIDTH) / (memory.length - 1);
  const y = (size) => HEIGHT - 14 - (high === low ? 0.5 : (size - low * 0.98) / (high - low * 0.98)) * (HEIGHT - 28);
  const points = sizes.map((size, i) => `${x(i).toFixed(1)} ${y(size).toFixed(1)}`);
  const says = `From ${bytes(sizes[0])} to ${bytes(sizes.at(-1))}; the most is ${bytes(high)}.`;
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": says },
    draw("path", { class: "area", d: `M0 ${HEIGHT}L${points.join("L")}L${WIDTH} ${HEIGHT}z` }),
    draw("path", { class: "edge", d: `M${points.join("L")}`, "vector-effect": "non-scaling-stroke" }));
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const i = Math.round(((event.clientX - box.left) / box.width) * (memory.length - 1));
    if (memory[i]?.[0] >= 0) choose(memory[i][0]);
  });
  return make("div", null, svg, make("p", { class: "dim" }, says));
}

/** Marks the chosen pass in the chart of the memory. */
function showHere() {
  const at = memory.findIndex(([run]) => run === state.run);
  if (at < 0) return;
  const x = (at * 600) / (memory.length - 1);
  document.querySelector(".chart")?.append(draw("path", { class: "here", d: `M${x} 0V132`, "vector-effect": "non-scaling-stroke" }));
}

// ---- The search ----

/** The names of all bindings, each with its function. */
function allBindings() {
  if (allBindings.found) return allBindings.found;
  const found = [];
  functions.forEach((_, f) => {
    const names = new Set();
    (programOf.get(f) ?? []).forEach((line) => bindersOf(line).forEach((name) => names.add(name)));
    for (const { change } of changes(f)) for (const hunk of change.hunks ?? []) for (const side of [2, 3]) {
      hunk[side].forEach((line) => bindersOf(line).forEach((name) => names.add(name)));
    }
    names.forEach((name) => found.push([f, name]));
  });
  return (allBindings.found = found);
}

function showSearch() {
  const [query, list] = [$("query"), $("matches")];
  let items = [];
  let chosen = -1;
  const close = () => {
    list.hidden = true;
    query.setAttribute("aria-expanded", "false");
    query.removeAttribute("aria-activedescendant");
  };
  const mark = (to) => {
    chosen = to;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === to)));
    if (to >= 0) query.setAttribute("aria-activedescendant", `match-${to}`);
    list.children[to]?.scrollIntoView({ block: "nearest" });
  };
  const take = (i) => {
    if (!items[i]) return;
    close();
    items[i].go();
  };
  const find = () => {
    const text = query.value.trim().toLowerCase();
    boxes.forEach((box, i) => box.classList.toggle("missed", text !== "" && runs[i].kind !== "sequence" && !runs[i].name.toLowerCase().includes(text)));
    if (text === "") return close();
    const passes = leaves.filter((i) => runs[i].name.toLowerCase().includes(text)).slice(0, 8)
      .map((i) => ({ label: title(i), of: runs[i].outcome, go: () => choose(i) }));
    const bare = text.replace(/^[%@]/, "");
    const bindings = allBindings().filter(([f, name]) => name.toLowerCase().includes(bare) || functions[f].toLowerCase() === bare).slice(0, 12)
      .map(([f, name]) => ({ label: name, of: `@${functions[f]}`, go: () => chooseBinding(f, name) }));
    items = [...passes, ...bindings];
    list.replaceChildren(...items.map(({ label, of }, i) => make("li", {
      id: `match-${i}`, role: "option", onmousedown: (event) => { event.preventDefault(); take(i); },
    }, make("span", null, label), make("span", { class: "dim" }, of))));
    if (items.length === 0) list.append(make("li", { class: "none dim", role: "option", "aria-disabled": "true" }, "Nothing has this name."));
    list.hidden = false;
    query.setAttribute("aria-expanded", "true");
    mark(items.length > 0 ? 0 : -1);
  };
  query.addEventListener("input", find);
  query.addEventListener("focus", find);
  query.addEventListener("blur", close);
  query.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") mark(Math.min(chosen + 1, items.length - 1));
    else if (event.key === "ArrowUp") mark(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") take(chosen);
    else if (event.key === "Escape") { query.value = ""; find(); query.blur(); }
    else return;
    event.preventDefault();
  });
}

/** Chooses a binding, at a pass that it exists at or was changed by. */
function chooseBinding(f, name) {
  const events = historyOf(f).events.get(name) ?? [];
  const isHere = events.some(({ run }) => run === state.run);
  choose(isHere || events.length === 0 ? state.run : events[0].run, f, name);
  if (matchMedia("(max-width: 900px)").matches) $("history").scrollIntoView({ block: "start" });
}

// ---- The page ----

function showSummary() {
  const parts = [
    [count(leaves.length, "pass", "passes")], [count(changed.length, "change")], [duration(totalTime)],
  ];
  const more = recording.runs_left_out ? ` · ${count(recording.runs_left_out, "more run")} not kept` : "";
  const failed = runs.some((run) => run.outcome === "failed");
  $("summary").append(...parts.flatMap(([text], i) => [i ? " · " : "", make("b", null, text)]), more,
    failed ? make("span", { class: "chip failed" }, "failed") : "");
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.t-name");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const f = Number(link.dataset.function);
  choose(state.run, f, link.dataset.name);
  if (matchMedia("(max-width: 900px)").matches) $("history").scrollIntoView({ block: "start" });
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input")) return;
  if (event.key === "n") toChange(1);
  else if (event.key === "p") toChange(-1);
  else if (event.key === "/") $("query").focus();
  else return;
  event.preventDefault();
});

window.addEventListener("hashchange", () => {
  const { run, function: f, binding } = readAddress();
  choose(run < 0 ? state.run : run, f, binding, true);
});

showSummary();
showBar();
showRun();
showSearch();
const asked = readAddress();
state.run = -2;
choose(asked.run >= 0 ? asked.run : changed[0] ?? leaves[0] ?? -1, asked.function, asked.binding, true);
showBinding();
