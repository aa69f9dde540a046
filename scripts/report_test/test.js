// Uses the pages of `anfora opt --report` and `anfora diff --report` in a browser. `scripts/report-test` runs this.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { chromium } = require("playwright-core");

const keep = process.argv[2] === "--keep" ? process.argv[3] : null;
const folder = keep ?? fs.mkdtempSync(path.join(os.tmpdir(), "anfora-report-"));
fs.mkdirSync(folder, { recursive: true });

const PIPELINE =
  "FoldConstant,fixpoint<4>(CanonicalizeBindings,EliminateCommonSubexpr,DeadCodeElimination),FuseOps,InlineFunctions";

/** Runs a pipeline over a program, and returns the path of its report. */
function report(name, program, options, status = 0) {
  const page = path.join(folder, `${name}.html`);
  const done = spawnSync(process.env.ANFORA, ["opt", program, "--emit", "none", "--report", page, ...options], { encoding: "utf8" });
  assert.equal(done.status, status, done.stderr);
  return page;
}

/** Opens a page on a screen, and checks at the end that it wrote and requested nothing. */
async function open(browser, page, { width = 1280, height = 900, colorScheme = "light" } = {}, use) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const tab = await context.newPage();
  const problems = [];
  tab.on("console", (message) => problems.push(`console: ${message.text()}`));
  tab.on("pageerror", (error) => problems.push(`error: ${error.stack}`));
  const url = pathToFileURL(page).href;
  tab.on("request", (request) => {
    if (request.url().split("#")[0] !== url && !/^(?:about|data):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  await tab.goto(url);
  await use(tab);
  assert.deepEqual(problems, []);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} pixels too wide for ${width}`);
  await context.close();
}

const text = (tab, selector) => tab.locator(selector).innerText();
const pass = (tab, name) => tab.locator(`#bar .pass[aria-label^="${name}:"]`).first();

/** The height at which a binding is drawn among its neighbours. */
const heightOf = async (tab, name) => (await tab.locator(`#graph .node[data-name='${name}']`).boundingBox()).y;

/** The colour that a style names, of an element. */
const colourOf = (element) => element.evaluate((e) => getComputedStyle(e).getPropertyValue("--colour"));

/** The texts of the cells of each row of a table. */
const cellsOf = (rows) => rows.evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));

/** The reasons in the history of the chosen binding, of the event that begins with these words. */
const reasonsOf = (tab, words) => tab.locator("#history li", { hasText: words }).locator(".why").allInnerTexts();

/** Chooses a binding of `@main` by the address of the page. */
async function choose(tab, run, name) {
  await tab.evaluate((to) => { location.hash = to; }, `#pass=${run}&function=main&binding=${encodeURIComponent(name.slice(1))}`);
  await tab.locator(`#graph .node.centre[data-name='${name}']`).waitFor();
}

/** Copies the pipeline by its button; where the page may not write to the clipboard, the text is selected instead. */
async function isCopied(tab, press) {
  const button = tab.locator("#run button").first();
  assert.equal(await button.innerText(), "copy");
  assert.equal(await tab.evaluate(() => String(getSelection())), "");
  await press(button);
  const isDone = (pipeline) => document.querySelector("#run button").textContent === "copied" || String(getSelection()) === pipeline;
  await tab.waitForFunction(isDone, PIPELINE);
  if ((await button.innerText()) !== "copied") return;
  await tab.context().grantPermissions(["clipboard-read"]);
  assert.equal(await tab.evaluate(() => navigator.clipboard.readText()), PIPELINE);
}

/** The bar: outcomes, numbers, and the passes in the rounds of the fixpoint, which is in the pipeline. */
async function barIsNested(tab) {
  await tab.locator("#bar .pass.changed").first().waitFor();
  assert.equal(await tab.locator("#bar .pass.changed").count(), 4);
  assert.equal(await tab.locator("#bar .pass.unchanged").count(), 4);
  assert.equal(await tab.locator("#bar .pass.skipped").count(), 1);
  assert.match(await text(tab, "#summary"), /^9 passes · 4 changes · [\d.]+ (?:µs|ms|s)$/);
  const inside = (element) => element.locator(":scope > .inside > *");
  const labels = (elements) => elements.locator(":scope > .label, :scope > span").allTextContents();
  const outer = inside(tab.locator("#bar > .inside > .sequence"));
  assert.deepEqual(await labels(outer), ["FoldConstant", "fixpoint<4>", "FuseOps", "InlineFunctions"]);
  const fixpoint = tab.locator("#bar .sequence .sequence");
  assert.equal(await fixpoint.count(), 1);
  const rounds = inside(fixpoint);
  assert.deepEqual(await labels(rounds), ["round 1", "round 2"]);
  for (const round of await rounds.all()) {
    assert.match(await round.getAttribute("class"), /^round$/);
    assert.deepEqual(await labels(inside(round)), ["CanonicalizeBindings", "EliminateCommonSubexpr", "DeadCodeElimination"]);
  }
  // They are drawn in this way too: the rounds side by side, below the name of the fixpoint and within its width.
  const [whole, first, second] = await Promise.all([fixpoint, rounds.first(), rounds.last()].map((element) => element.boundingBox()));
  assert.ok(whole.x <= first.x && first.x + first.width <= second.x && second.x + second.width <= whole.x + whole.width + 0.5);
  assert.ok(whole.y < first.y && first.y === second.y);
}

/** The five parts, each clicked and read. */
async function byMouse(tab) {
  // 1. The bar; a click chooses a pass.
  await barIsNested(tab);
  await pass(tab, "FoldConstant").click();
  // 2. What the pass changed: rows side by side, operators, statistics.
  assert.match(await text(tab, "#step"), /1 · FoldConstant[\s\S]*changed[\s\S]*OPERATORS[\s\S]*add/i);
  const operators = tab.locator("#step .operators tr");
  assert.deepEqual(await cellsOf(operators), [["operator", "before", "after", ""], ["add", "4", "3", "−1"]]);
  assert.deepEqual(await cellsOf(tab.locator("#step .statistics tr")), [["bytes", "4"], ["folded", "1"]]);
  const row = tab.locator("#step tr", { hasText: "%twice" }).first();
  assert.match(await row.locator("td.line.old").innerText(), /let %twice = multiply\(%x, %one\);/);
  assert.match(await row.locator("td.line.new").innerText(), /let %twice = multiply\(%x, 1f\);/);
  assert.equal(await row.locator("td.line.new mark").innerText(), "1f");
  // A name in a row leads to 3., its history, and 4., its neighbours.
  await row.locator('td.new a[data-name="%twice"]').click();
  assert.match(await text(tab, "#history"), /History of %twice[\s\S]*In the program before the first pass[\s\S]*Changed by[\s\S]*FoldConstant/);
  // It changed because of the operand that it lost.
  assert.deepEqual(await reasonsOf(tab, "Changed by"), ["%one: it follows from constants and types"]);
  assert.deepEqual(await reasonsOf(tab, "Removed by"), ["an earlier binding has the same value"]);
  const node = tab.locator("#graph .node", { hasText: "exp" });
  assert.match(await text(tab, "#graph"), /The program after 1 · FoldConstant/);
  // Operands are above the binding, users below it.
  assert.ok((await heightOf(tab, "%x")) < (await heightOf(tab, "%twice")));
  assert.ok((await heightOf(tab, "%twice")) < (await heightOf(tab, "%unused")));
  assert.equal(await tab.locator("#graph .node.centre").getAttribute("data-name"), "%twice");
  await node.click();
  assert.match(await text(tab, "#history"), /History of %unused[\s\S]*Removed by[\s\S]*DeadCodeElimination/);
  assert.deepEqual(await reasonsOf(tab, "Changed by"), ["%twice: an earlier binding has the same value"]);
  assert.deepEqual(await reasonsOf(tab, "Removed by"), ["nothing uses it"]);
  // An event in the history leads to its pass.
  await tab.locator("#history button", { hasText: "DeadCodeElimination" }).click();
  assert.match(await text(tab, "#step"), /DeadCodeElimination[\s\S]*%unused/);
  assert.deepEqual(await cellsOf(operators), [["operator", "before", "after", ""], ["exp", "1", "0", "−1"]]);
  assert.deepEqual(await cellsOf(tab.locator("#step .statistics tr")), [["bindings", "1"]]);
  // Names that are no identifiers, and texts that look like HTML, are text.
  await pass(tab, "FoldConstant").click();
  await tab.locator(`#step td.new a[data-name='%"a name, with %signs & <marks>"']`).first().click();
  assert.match(await text(tab, "#history"), /a name, with %signs & <marks>/);
  await runByMouse(tab);
}

/** The fifth part: memory, pipeline, command. */
async function runByMouse(tab) {
  const run = await text(tab, "#run");
  assert.match(run, /MEMORY OF THE PROGRAM[\s\S]*From [\d.]+ \w+ to/i);
  assert.ok(run.includes(PIPELINE), run);
  assert.match(run, /anfora opt .*program\.anf .*--report /);
  assert.match(run, /bindings\s+\d+ → \d+/);
  // A click in the chart chooses the pass at that place, which a line marks.
  assert.equal(await text(tab, "#step-title"), "1 · FoldConstant");
  const { width } = await tab.locator(".chart").boundingBox();
  await tab.locator(".chart").click({ position: { x: width - 5, y: 60 } });
  assert.equal(await text(tab, "#step-title"), "9 · InlineFunctions");
  assert.equal(await tab.locator(".chart .here").getAttribute("d"), "M600 0V132");
  await isCopied(tab, (button) => button.click());
}

/** What has the focus: its name for people who hear the page, or else its id. */
const focusedIn = (tab) => tab.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.id);

/** The bar and the search without a mouse. */
async function barByKeyboard(tab) {
  const focused = () => focusedIn(tab);
  await tab.locator("#bar .pass.changed").first().waitFor();
  // 1. Keys go from change to change, and from pass to pass in the bar.
  await tab.keyboard.press("n");
  assert.match(await text(tab, "#step-title"), /· (?!FoldConstant)/);
  await tab.keyboard.press("p");
  assert.equal(await text(tab, "#step-title"), "1 · FoldConstant");
  await tab.locator('#bar [tabindex="0"]').focus();
  await tab.keyboard.press("ArrowRight");
  await tab.keyboard.press("ArrowRight");
  assert.match(await focused(), /^CanonicalizeBindings:/);
  assert.match(await text(tab, "#step-title"), /2 · CanonicalizeBindings/);
  await tab.keyboard.press("Home");
  assert.match(await focused(), /^pipeline:/);
  await tab.keyboard.press("End");
  assert.match(await focused(), /^InlineFunctions:/);
  assert.equal(await text(tab, "#step-title"), "9 · InlineFunctions");
  // The search finds passes and bindings.
  await tab.keyboard.press("/");
  assert.equal(await focused(), "query");
  await tab.keyboard.type("foldc");
  assert.ok((await tab.locator("#bar .pass.missed").count()) > 3);
  await tab.keyboard.press("Enter");
  assert.equal(await text(tab, "#step-title"), "1 · FoldConstant");
  await tab.keyboard.press("Escape");
  await tab.keyboard.press("/");
  await tab.keyboard.type("twice");
  assert.match(await text(tab, "#matches"), /%twice/);
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("ArrowUp");
  await tab.keyboard.press("Enter");
  assert.match(await text(tab, "#history"), /History of %twice/);
  await tab.keyboard.press("Escape");
}

/** The same parts without a mouse. */
async function byKeyboard(tab) {
  await barByKeyboard(tab);
  // 2. The rows can be reached and scrolled; the name that a row binds is a link.
  await tab.locator("#step .rows").first().focus();
  await tab.keyboard.press("Tab");
  const name = await tab.evaluate(() => document.activeElement.dataset.name);
  assert.match(name, /^%/);
  assert.notEqual(name, "%twice");
  await tab.keyboard.press("Enter");
  assert.equal(await text(tab, "#history-title"), `History of ${name} in @main`);
  // 3. and 4. Keys go from node to node, and choose one.
  await tab.keyboard.press("/");
  await tab.keyboard.type("twice");
  await tab.keyboard.press("Enter");
  await tab.locator("#graph .node.centre").focus();
  await tab.keyboard.press("ArrowDown");
  assert.doesNotMatch(await focusedIn(tab), /%twice,/);
  await tab.keyboard.press("Enter");
  assert.doesNotMatch(await text(tab, "#history-title"), /%twice/);
  // The history leads to the last pass that did something to it.
  const event = tab.locator("#history button").last();
  const to = await event.innerText();
  assert.notEqual(await text(tab, "#step-title"), to);
  await event.focus();
  await tab.keyboard.press("Enter");
  assert.equal(await text(tab, "#step-title"), to);
  // 5. The buttons of the run.
  await isCopied(tab, async (button) => {
    await button.focus();
    await tab.keyboard.press("Enter");
  });
}

/** Every control has a name for people who hear the page. */
async function isNamed(tab) {
  const nameless = await tab.evaluate(() =>
    [...document.querySelectorAll("button, a[href], input, [role=button], [tabindex='0']")]
      .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length))
      .map((e) => e.outerHTML.slice(0, 120)));
  assert.deepEqual(nameless, []);
}

/** Writes two programs and the page of their differences. */
function differences() {
  const body = (operator, constant, extra) => `def @main(%x: Tensor[(4,), float32]) {
  let %"<b>&" = multiply(%x, dense<Tensor[(4,), float32]>[1, 1, 1, ${constant}]);
${extra}  let %sum = ${operator}(%"<b>&", %x);
  %sum
}
`;
  const helper = (name) => `def @${name}(%p: Tensor[(4,), float32]) { exp(%p) }\n`;
  const [old, now] = [path.join(folder, "old.anf"), path.join(folder, "new.anf")];
  fs.writeFileSync(old, body("add", 2, "") + helper("only_old"));
  fs.writeFileSync(now, body("subtract", 3, "  let %more = tanh(%x);\n") + helper("same").replace("exp", "tanh"));
  const page = path.join(folder, "diff.html");
  const done = spawnSync(process.env.ANFORA, ["diff", old, now, "--report", page], { encoding: "utf8" });
  assert.equal(done.status, 1, done.stderr);
  return page;
}

/** The page of differences: rows, kinds, search, keys. */
async function differencesAreUsed(tab) {
  assert.match(await text(tab, "#summary"), /\d+ differences in \d+ functions/);
  const rows = tab.locator("#differences tbody tr");
  const row = tab.locator("#differences tr", { hasText: "operator" }).first();
  assert.match(await row.innerText(), /%sum/);
  assert.equal(await row.locator("td.old mark").innerText(), "add");
  assert.equal(await row.locator("td.new mark").innerText(), "subtract");
  assert.match(await text(tab, "#differences"), /%"<b>&"/);
  const added = tab.locator("#differences tr.added", { hasText: "%more" });
  assert.match(await added.innerText(), /tanh\(%x\)/);
  // A kind is hidden and shown again.
  const all = await rows.count();
  await tab.locator(".kind.added").click();
  assert.equal(await added.count(), 0);
  assert.ok((await rows.count()) < all);
  await tab.locator(".kind.added").click();
  assert.equal(await rows.count(), all);
  // The search leaves the rows with a name or a value.
  await tab.keyboard.press("/");
  await tab.keyboard.type("subtract");
  assert.equal(await rows.count(), 1);
  await tab.locator("#query").fill("nothing has this");
  assert.match(await text(tab, "#differences"), /No difference has this kind and text/);
  await tab.locator("#query").fill("");
  await tab.keyboard.press("Escape");
  // Keys go from function to function.
  await tab.keyboard.press("n");
  const focused = () => tab.evaluate(() => document.activeElement.textContent);
  assert.match(await focused(), /@main/);
  await tab.keyboard.press("n");
  assert.doesNotMatch(await focused(), /@main/);
  await tab.keyboard.press("p");
  await tab.keyboard.press("Enter");
  assert.equal(await tab.locator("details.function").first().getAttribute("open"), null);
  await tab.keyboard.press("Enter");
  assert.match(await text(tab, "#run"), /old\.anf[\s\S]*new\.anf[\s\S]*anfora diff .*--report/);
}

/** A page of a program in the text format. */
function reportOf(name, text, options) {
  const program = path.join(folder, `${name}.anf`);
  fs.writeFileSync(program, text);
  return report(name, program, options);
}

/** A copy of a page with other data. */
function withData(page, name, change) {
  const [before, rest] = fs.readFileSync(page, "utf8").split('<script type="application/json" id="data">');
  const end = rest.indexOf("</script>");
  const data = JSON.parse(rest.slice(0, end));
  change(data);
  const copy = path.join(folder, `${name}.html`);
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  fs.writeFileSync(copy, `${before}<script type="application/json" id="data">${json}${rest.slice(end)}`);
  return copy;
}

/** Names with dots, fields, parameters of a `fn`, variables without a name, and near misses. */
async function namesAreThoseOfLines(tab) {
  const link = (name) => tab.locator(`#step td.line a[data-name='${name}']`).last();
  const history = () => text(tab, "#history");
  await pass(tab, "DeadCodeElimination").click();
  // A field is no part of a name.
  const links = (line) => tab.locator("#step tr", { hasText: line }).first().locator("td.line").last().locator("a");
  assert.deepEqual(await links("let %a = %t.0;").allInnerTexts(), ["%a", "%t"]);
  await links("let %a = %t.0;").last().click();
  assert.match(await history(), /History of %t in @main[\s\S]*In the program before the first pass[\s\S]*In the result/);
  const nodes = (label) => tab.locator("#graph .node", { hasText: label });
  assert.equal(await nodes("field").count(), 1);
  assert.equal(await tab.locator("#graph .edge.near").count(), 2);
  // A name with a dot is in quotes.
  await link('%"conv.1"').click();
  assert.match(await history(), /History of %"conv\.1"[\s\S]*A parameter of the program[\s\S]*In the result/);
  // The parameter of a `fn` is no operand of it, and an operand of what is in the block.
  await links("let %f = fn (%p").first().click();
  assert.match(await history(), /History of %f/);
  assert.equal(await tab.locator('#graph .node[data-name="%p"]').count(), 0);
  await links("let %f = fn (%p").last().click();
  assert.equal(await nodes("nn.relu").count(), 1);
  await pass(tab, "ToANormalForm").click();
  // A variable without a name is none whose name is a number.
  const unnamed = await tab.locator('#step td.new a[data-name^="%#"]').first().getAttribute("data-name");
  await tab.locator(`#step td.new a[data-name="${unnamed}"]`).first().click();
  const says = await history();
  assert.ok(says.includes(`History of ${unnamed}`) && /Made by[\s\S]*ToANormalForm/.test(says), says);
  assert.ok(!says.includes("In the result"), says);
  // A binding has the colour of the pass that made it.
  const made = await colourOf(tab.locator("#graph .node.centre"));
  assert.equal(made, await colourOf(tab.locator("#graph figcaption li", { hasText: "made by 1 · ToANormalForm" })));
  // The address has the name, and leads to it.
  const hash = await tab.evaluate(() => location.hash);
  await link('%"conv.1"').click();
  assert.notEqual(made, await colourOf(tab.locator("#graph .node.centre")));
  await tab.evaluate((to) => { location.hash = to; }, hash);
  await tab.locator("#history .code", { hasText: unnamed }).waitFor();
  // Rules that nearly applied link to their binding.
  await pass(tab, "SimplifyExpr").click();
  const misses = tab.locator("#step .messages", { hasText: /near misses/i });
  const miss = misses.locator("li", { hasText: '@main %"b.2"' });
  assert.match(await miss.first().innerText(), /^add\(%x, 0\) => %x @main %"b\.2" no operand of `add\(%x, %.*\)` is the integer 0$/);
  await miss.first().locator("a").click();
  assert.match(await history(), /History of %"b\.2"/);
}

/** Why a value that is used twice is not fused, and why what follows from it is not folded. */
async function nearMissesAreRead(tab) {
  const misses = async (name) => {
    await pass(tab, name).click();
    return tab.locator("#step .messages", { hasText: /near misses/i }).locator("li");
  };
  const fusion = await misses("FuseOps");
  assert.deepEqual(await fusion.allInnerTexts(), ["FuseOps @main %a it is used by %b and %c, which lead to no common binding"]);
  await fusion.locator("a").click();
  assert.match(await text(tab, "#history"), /History of %a in @main[\s\S]*In the result/);
  const folding = await misses("FoldConstant");
  assert.deepEqual(await folding.allInnerTexts(), ["FoldConstant @main %b %a is not constant"]);
  await folding.locator("a").click();
  assert.match(await text(tab, "#history"), /History of %b in @main/);
}

/** The names in the graph, in layers from the top. */
async function layersOf(tab) {
  const nodes = await tab.locator("#graph .node").evaluateAll((all) => all.map((e) => [e.dataset.name, e.getBoundingClientRect().y]));
  const heights = [...new Set(nodes.map(([, y]) => y))].sort((a, b) => a - b);
  return heights.map((height) => nodes.filter(([, y]) => y === height).map(([name]) => name));
}

/** The neighbours of a binding in a chain of calls: two before it, and two after it. */
async function chainIsDrawn(tab) {
  await choose(tab, 2, "%v4");
  assert.deepEqual(await layersOf(tab), [["%v2"], ["%v3"], ["%v4"], ["%v5"], ["%v6"]]);
  assert.equal(await tab.locator("#graph .edge").count(), 4);
  assert.equal(await tab.locator("#graph .edge.near").count(), 2);
  assert.doesNotMatch(await text(tab, "#graph figcaption"), /not drawn/);
  // At the end of the chain, there is less to draw.
  await choose(tab, 2, "%v7");
  assert.deepEqual(await layersOf(tab), [["%v5"], ["%v6"], ["%v7"]]);
}

/** A binding with more users than a layer has room for. */
async function manyUsers(tab) {
  await choose(tab, 2, "%h");
  const layers = await layersOf(tab);
  assert.deepEqual(layers.map((names) => names.length), [1, 1, 6]);
  assert.ok(layers[2].every((name) => /^%u\d+$/.test(name)), `${layers[2]}`);
  assert.match(await text(tab, "#graph figcaption"), /The program after 1 · DeadCodeElimination\. 14 more neighbours not drawn\./);
}

/** A remark says what a pass did not do, and leads to its binding. */
async function remarksAreOpened(tab) {
  await pass(tab, "FoldConstant").click();
  const remark = tab.locator("#step .messages", { hasText: /remarks/i }).locator("li").first();
  assert.match(await remark.innerText(), /`divide` on constants was not folded, because it fails: integer division by zero/);
  await remark.locator('a[data-name="%bad"]').click();
  assert.match(await text(tab, "#history"), /History of %bad[\s\S]*In the program before the first pass/);
}

/** A page of more functions than a recording keeps. */
async function manyFunctions(tab) {
  await pass(tab, "DeadCodeElimination").click();
  assert.equal(await tab.locator("details.function").count(), 50);
  assert.match(await text(tab, "#step"), /The changes of [\d,]+ more functions were not kept/);
  await tab.locator(".more-rows", { hasText: "more functions" }).first().click();
  assert.equal(await tab.locator("details.function").count(), 100);
  const choose = (name) => tab.evaluate((to) => { location.hash = to; }, `#pass=2&function=${name}&binding=dead`);
  await choose("f0");
  await tab.locator("#history-title", { hasText: "@f0" }).waitFor();
  assert.match(await text(tab, "#history"), /In the program before the first pass[\s\S]*Removed by/);
  await choose("f5999");
  await tab.locator("#history-title", { hasText: "@f5999" }).waitFor();
  const says = await text(tab, "#history");
  assert.match(says, /Changes of @f5999 were not kept by[\s\S]*DeadCodeElimination[\s\S]*What became of it is not known/);
  assert.doesNotMatch(says, /In the result/);
}

/** A page of a change of more rows than a recording keeps. */
async function manyRows(tab) {
  await pass(tab, "DeadCodeElimination").click();
  assert.ok((await tab.locator("#step td.line").count()) > 100, "the head of the change is there");
  for (let more = tab.locator("#step .more-rows", { hasText: "more rows" }); await more.count(); ) await more.first().click();
  assert.match(await text(tab, "#step tr.gap"), /Not kept: [\d,]+ old rows and [\d,]+ new rows?, of which [\d,]+ changed/);
  await tab.evaluate(() => { location.hash = "#pass=2&function=main&binding=v29999"; });
  await tab.locator("#history-title", { hasText: "%v29999" }).waitFor();
  const says = await text(tab, "#history");
  assert.match(says, /is not known[\s\S]*Changes of @main were not kept by[\s\S]*What became of it is not known/);
  assert.match(await text(tab, "#graph"), /elsewhere[\s\S]*may be out of date/);
}

/** Runs that no sequence runs: the widths and shares of the passes are those of all runs. */
async function withoutSequence(tab) {
  const widths = await tab.locator("#bar .pass").evaluateAll((all) => all.map((box) => box.getBoundingClientRect().width));
  assert.ok(widths.reduce((sum, width) => sum + width, 0) > 1000, `${widths}`);
  await tab.locator("#bar .pass").last().click();
  const [, share] = /\(([\d.]+) %\)/.exec(await text(tab, "#step .figures"));
  assert.ok(Number(share) <= 100, share);
}

/** The times of the runs, for `widthIsTime`. */
function setTimes({ recording: { runs } }) {
  const times = { FoldConstant: 1000, InlineFunctions: 9000, "fixpoint<4>": 5000, pipeline: 15000 };
  for (const run of runs) run.time = run.round ? [1000, 500][run.round - 1] : times[run.name] ?? run.time;
}

/** The width of a pass and of a round is its time. */
async function widthIsTime(tab) {
  const widthOf = async (element) => (await element.boundingBox()).width;
  const ratio = (await widthOf(pass(tab, "InlineFunctions"))) / (await widthOf(pass(tab, "FoldConstant")));
  assert.ok(ratio > 8.5 && ratio < 9.5, `${ratio}`);
  const rounds = tab.locator("#bar .round");
  const ofRounds = (await widthOf(rounds.first())) / (await widthOf(rounds.last()));
  assert.ok(ofRounds > 1.7 && ofRounds < 2.3, `${ofRounds}`);
  await pass(tab, "InlineFunctions").click();
  assert.match(await text(tab, "#step .figures"), /time 9\.00 ms \(60\.0 %\)/);
}

/** A run of which a pass failed: each outcome has its colour, and the page says what failed. */
async function outcomesDiffer(tab) {
  const styles = [];
  for (const outcome of ["changed", "unchanged", "failed", "skipped"]) {
    const passes = tab.locator(`#bar .pass.${outcome}`);
    assert.equal(await passes.count(), 1, outcome);
    styles.push(await passes.evaluate((e) => [getComputedStyle(e).backgroundColor, getComputedStyle(e).backgroundImage]));
  }
  const colours = styles.slice(0, 3).map(([colour]) => colour);
  assert.equal(new Set(colours).size, 3, `${colours}`);
  assert.deepEqual(styles.slice(0, 3).map(([, image]) => image), ["none", "none", "none"]);
  assert.match(styles[3][1], /gradient/);
  assert.match(await text(tab, "#summary"), /^4 passes · 1 change · .*failed$/s);
  await pass(tab, "FuseOps").click();
  assert.match(await text(tab, "#step"), /skipped[\s\S]*it is disabled[\s\S]*The pass did not run/);
  await pass(tab, "BindParams").click();
  assert.match(await text(tab, "#step"), /failed[\s\S]*there is no parameter `%q`/);
}

/** A pass that another pass runs: it is no change of its own. */
async function partsOfPasses(tab) {
  await pass(tab, "FoldConstant").click();
  const first = await text(tab, "#step-title");
  await tab.keyboard.press("n");
  assert.doesNotMatch(await text(tab, "#step-title"), /A part/);
  await pass(tab, "A part").click();
  assert.match(await text(tab, "#step"), /It is a part of/);
  await tab.locator("#step .empty button").click();
  assert.equal(await text(tab, "#step-title"), first);
}

/** A page in a frame, as a notebook has it. */
async function inFrame(tab) {
  const frame = tab.frameLocator("iframe");
  await frame.locator("#bar .pass.changed").first().click();
  await frame.locator('#step td.new a[data-name="%twice"]').first().click();
  assert.match(await frame.locator("#history").innerText(), /History of %twice/);
  await frame.locator("#graph .node.centre").waitFor();
  // The frame may not write to the clipboard, so the text is selected.
  await frame.locator("#run button", { hasText: "copy" }).first().click();
  assert.equal(await frame.locator("#run pre").first().evaluate(() => String(getSelection())), PIPELINE);
}

/** The pages of programs with unusual names, of large programs, and in other places. */
async function unusualPages(browser, page) {
  const names = reportOf("names", fs.readFileSync(path.join(__dirname, "names.anf"), "utf8"), ["--passes", "ToANormalForm,DeadCodeElimination,SimplifyExpr"]);
  await open(browser, names, {}, namesAreThoseOfLines);
  const division = "def @main(%x: int32) { let %bad = divide(1, 0); add(%bad, %x) }";
  await open(browser, reportOf("remarks", division, ["--passes", "FoldConstant"]), {}, remarksAreOpened);
  const near = `def @main(%x: Tensor[(4,), float32]) {
  let %a = exp(%x);
  let %b = multiply(%a, 2f);
  let %c = tanh(%a);
  add(%b, %c)
}`;
  await open(browser, reportOf("near", near, ["--passes", "ConvertToDataflow,FuseOps,FoldConstant"]), {}, nearMissesAreRead);
  const functions = Array.from({ length: 6000 }, (_, i) => `def @f${i}(%x: Tensor[(4,), float32]) { let %dead = exp(%x); %x }`);
  await open(browser, reportOf("functions", functions.join("\n"), ["--passes", "DeadCodeElimination"]), {}, manyFunctions);
  const main = (bindings, result) => `def @main(%x: Tensor[(4,), float32]) {\n${bindings.join("\n")}\n${result}\n}`;
  const chain = (length) => Array.from({ length }, (_, i) => `let %v${i} = exp(${i ? `%v${i - 1}` : "%x"});`);
  const rows = main(chain(30000), "%x");
  await open(browser, reportOf("rows", rows, ["--passes", "DeadCodeElimination"]), {}, manyRows);
  await open(browser, reportOf("chain", main(chain(8), "%v7"), ["--passes", "DeadCodeElimination"]), {}, chainIsDrawn);
  const users = Array.from({ length: 20 }, (_, i) => `%u${i}`);
  const used = main(["let %h = exp(%x);", ...users.map((name) => `let ${name} = tanh(%h);`)], `(${users.join(", ")})`);
  await open(browser, reportOf("users", used, ["--passes", "DeadCodeElimination"]), {}, manyUsers);
  // Each of these is counted once, although two paths lead to it.
  const both = main(["let %h = exp(%x);", "let %p = exp(%h);", "let %q = tanh(%h);", ...users.map((name) => `let ${name} = add(%p, %q);`)], `(${users.join(", ")})`);
  await open(browser, reportOf("both", both, ["--passes", "DeadCodeElimination"]), {}, async (tab) => {
    await choose(tab, 2, "%h");
    assert.match(await text(tab, "#graph figcaption"), /14 more neighbours not drawn\./);
  });
  const alone = withData(page, "alone", ({ recording }) => {
    recording.runs = recording.runs.filter((run) => run.kind !== "sequence").map(({ parent, round, ...run }) => run);
  });
  await open(browser, alone, {}, withoutSequence);
  await open(browser, withData(page, "times", setTimes), {}, widthIsTime);
  const part = withData(page, "part", ({ recording }) => {
    const at = recording.runs.findIndex((run) => run.name === "FoldConstant");
    const shift = (run) => (run.parent > at ? { ...run, parent: run.parent + 1 } : run);
    const inner = { name: "A part", text: "A part", kind: "function", parent: at, begin: 0, time: 1, outcome: "changed", bytes: [1, 1] };
    recording.runs = [...recording.runs.slice(0, at + 1), inner, ...recording.runs.slice(at + 1).map(shift)];
  });
  await open(browser, part, {}, partsOfPasses);
  const notebook = path.join(folder, "notebook.html");
  const source = fs.readFileSync(page, "utf8").replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  fs.writeFileSync(notebook, `<!DOCTYPE html><link rel="icon" href="data:,"><iframe srcdoc="${source}" sandbox="allow-scripts" width="100%" height="720" style="border:0"></iframe>`);
  await open(browser, notebook, {}, inFrame);
}

/** The page of a model with 5,000 bindings is small, and shows names that begin in this way. What is looked at is built when it is looked at. */
async function largePage(browser, name, program, begin) {
  const page = report(name, program, ["-O3"]);
  const size = fs.statSync(page).size;
  assert.ok(size < 2e6, `the report of 5,000 bindings (${name}) has ${size} bytes`);
  await open(browser, page, {}, async (tab) => {
    await tab.locator("#bar .pass.changed").first().click();
    await tab.locator("#step td.line").first().waitFor();
    assert.ok((await tab.locator("#step tr").count()) <= 1300);
    assert.ok((await text(tab, "#step")).includes(begin));
  });
}

async function test() {
  const program = path.join(__dirname, "program.anf");
  const page = report("program", program, ["--passes", PIPELINE, "--disable", "FuseOps"]);
  const failing = 'FoldConstant,CanonicalizeBindings,FuseOps,BindParams{function=main,params="%q=1f"}';
  const failed = report("failed", program, ["--passes", failing, "--disable", "FuseOps"], 1);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  const different = differences();
  for (const colorScheme of ["light", "dark"]) {
    await open(browser, failed, { colorScheme }, outcomesDiffer);
    for (const width of [1280, 400]) {
      const screen = { width, height: width === 400 ? 800 : 900, colorScheme };
      await open(browser, page, screen, byMouse);
      await open(browser, page, screen, byKeyboard);
      await open(browser, different, screen, differencesAreUsed);
      await open(browser, different, screen, async (tab) => {
        await isNamed(tab);
        assert.ok(await tab.locator("#differences tr", { hasText: "subtract" }).first().isVisible());
        if (keep) await tab.screenshot({ path: path.join(folder, `diff-${colorScheme}-${width}.png`), fullPage: true });
      });
      await open(browser, page, screen, async (tab) => {
        await isNamed(tab);
        await tab.locator('#step td.new a[data-name="%twice"]').first().click();
        assert.match(await text(tab, "#history"), /History of %twice/);
        const paper = await tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const [red] = paper.match(/\d+/g);
        assert.equal(colorScheme === "dark", red < 128, paper);
        if (keep) await tab.screenshot({ path: path.join(folder, `${colorScheme}-${width}.png`), fullPage: true });
      });
    }
  }
  await unusualPages(browser, page);
  const large = path.join(folder, "large.anf");
  execFileSync(process.env.ANFORA, ["gen", "chain", "5000", "-o", large]);
  await largePage(browser, "large", large, "%b");
  // The same with names as models have them.
  const long = fs.readFileSync(large, "utf8").replace(/%(\w+)/g, '%"/model/layers.12/self_attn/q_proj/MatMul_$1_output_0"');
  const [source, model] = ["anf", "onnx"].map((kind) => path.join(folder, `long.${kind}`));
  fs.writeFileSync(source, long);
  execFileSync(process.env.ANFORA, ["convert", source, "-o", model]);
  await largePage(browser, "long", model, '%"/model/layers.12/self_attn/q_proj/MatMul_');
  await browser.close();
  if (!keep) fs.rmSync(folder, { recursive: true });
  console.log("the report: five parts, by mouse and keyboard, on two screens in two colour schemes; the differences of two programs");
}

test().catch((error) => {
  console.error(error);
  process.exit(1);
});
