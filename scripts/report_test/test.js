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

/** The five parts, each clicked and read. */
async function byMouse(tab) {
  // 1. The bar: its colours, rounds and sequences; a click chooses a pass.
  await tab.locator("#bar .pass.changed").first().waitFor();
  assert.ok((await tab.locator("#bar .pass.unchanged").count()) > 0);
  assert.equal(await tab.locator("#bar .pass.skipped").count(), 1);
  assert.match(await text(tab, "#bar"), /fixpoint<4>[\s\S]*round 1[\s\S]*round 2/);
  assert.match(await text(tab, "#summary"), /7 changes|\d+ passes · \d+ changes/);
  await pass(tab, "FoldConstant").click();
  // 2. What the pass changed: rows side by side, operators, statistics.
  assert.match(await text(tab, "#step"), /1 · FoldConstant[\s\S]*changed[\s\S]*OPERATORS[\s\S]*add/i);
  const row = tab.locator("#step tr", { hasText: "%twice" }).first();
  assert.match(await row.locator("td.line.old").innerText(), /let %twice = multiply\(%x, %one\);/);
  assert.match(await row.locator("td.line.new").innerText(), /let %twice = multiply\(%x, 1f\);/);
  assert.equal(await row.locator("td.line.new mark").innerText(), "1f");
  // A name in a row leads to 3., its history, and 4., its neighbours.
  await row.locator('td.new a[data-name="%twice"]').click();
  assert.match(await text(tab, "#history"), /History of %twice[\s\S]*In the program before the first pass[\s\S]*Changed by[\s\S]*FoldConstant/);
  const node = tab.locator("#graph .node", { hasText: "exp" });
  assert.match(await text(tab, "#graph"), /The program after 1 · FoldConstant/);
  // Operands are above the binding, users below it.
  assert.ok((await heightOf(tab, "%x")) < (await heightOf(tab, "%twice")));
  assert.ok((await heightOf(tab, "%twice")) < (await heightOf(tab, "%unused")));
  assert.equal(await tab.locator("#graph .node.centre").getAttribute("data-name"), "%twice");
  await node.click();
  assert.match(await text(tab, "#history"), /History of %unused[\s\S]*Removed by[\s\S]*DeadCodeElimination/);
  // An event in the history leads to its pass.
  await tab.locator("#history button", { hasText: "DeadCodeElimination" }).click();
  assert.match(await text(tab, "#step"), /DeadCodeElimination[\s\S]*%unused/);
  assert.match(await tab.locator("#step .statistics").innerText(), /\d/);
  // Names that are no identifiers, and texts that look like HTML, are text.
  await pass(tab, "FoldConstant").click();
  await tab.locator(`#step td.new a[data-name='%"a name, with %signs & <marks>"']`).first().click();
  assert.match(await text(tab, "#history"), /a name, with %signs & <marks>/);
  // 5. The run: memory, pipeline, command.
  const run = await text(tab, "#run");
  assert.match(run, /MEMORY OF THE PROGRAM[\s\S]*From [\d.]+ \w+ to/i);
  assert.ok(run.includes(PIPELINE), run);
  assert.match(run, /anfora opt .*program\.anf .*--report /);
  assert.match(run, /bindings\s+\d+ → \d+/);
  await tab.locator(".chart").click({ position: { x: 5, y: 60 } });
  await tab.locator("#run button", { hasText: "copy" }).first().click();
}

/** The same parts without a mouse. */
async function byKeyboard(tab) {
  const focused = () => tab.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.id);
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
  await tab.keyboard.press("End");
  assert.match(await focused(), /^InlineFunctions:/);
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
  // 2. The rows can be reached and scrolled; the name that a row binds is a link.
  await tab.locator("#step .rows").first().focus();
  await tab.keyboard.press("Tab");
  await tab.keyboard.press("Enter");
  assert.match(await text(tab, "#history"), /History of %/);
  // 3. and 4. Keys go from node to node, and choose one.
  await tab.keyboard.press("/");
  await tab.keyboard.type("twice");
  await tab.keyboard.press("Enter");
  await tab.locator("#graph .node.centre").focus();
  await tab.keyboard.press("ArrowDown");
  assert.doesNotMatch(await focused(), /%twice,/);
  await tab.keyboard.press("Enter");
  assert.doesNotMatch(await text(tab, "#history-title"), /%twice/);
  await tab.locator("#history button").first().focus();
  await tab.keyboard.press("Enter");
  // 5. The buttons of the run.
  await tab.locator("#run button").first().focus();
  await tab.keyboard.press("Enter");
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
  await misses.locator('a[data-name=\'%"b.2"\']').first().click();
  assert.match(await history(), /History of %"b\.2"/);
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
  const functions = Array.from({ length: 6000 }, (_, i) => `def @f${i}(%x: Tensor[(4,), float32]) { let %dead = exp(%x); %x }`);
  await open(browser, reportOf("functions", functions.join("\n"), ["--passes", "DeadCodeElimination"]), {}, manyFunctions);
  const chain = Array.from({ length: 30000 }, (_, i) => `let %v${i} = exp(${i ? `%v${i - 1}` : "%x"});`);
  const rows = `def @main(%x: Tensor[(4,), float32]) {\n${chain.join("\n")}\n%x\n}`;
  await open(browser, reportOf("rows", rows, ["--passes", "DeadCodeElimination"]), {}, manyRows);
  const alone = withData(page, "alone", ({ recording }) => {
    recording.runs = recording.runs.filter((run) => run.kind !== "sequence").map(({ parent, round, ...run }) => run);
  });
  await open(browser, alone, {}, withoutSequence);
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
  const failed = report("failed", program, ["--passes", 'CanonicalizeBindings,BindParams{function=main,params="%q=1f"}'], 1);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  await open(browser, failed, {}, async (tab) => {
    await pass(tab, "BindParams").click();
    assert.match(await text(tab, "#step"), /failed[\s\S]*there is no parameter `%q`/);
  });
  const different = differences();
  for (const colorScheme of ["light", "dark"]) {
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
