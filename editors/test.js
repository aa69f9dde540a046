// Tokenises every .anf file of the repository with the grammar. Started by `editors/test`.
'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const oniguruma = require('vscode-oniguruma');
const textmate = require('vscode-textmate');

const GRAMMAR = 'editors/vscode/syntaxes/anf.tmLanguage.json';
const WORD_SCOPES = /^(storage|keyword|constant\.language|support\.type)/;
const failures = [];

/** Returns the first group of all matches in a file, and notes a failure if there are few. */
function listed(file, pattern, least) {
  const found = [...fs.readFileSync(file, 'utf8').matchAll(pattern)].map((match) => match[1]);
  if (found.length < least) failures.push(`${file}: only ${found.length} words were found by ${pattern}`);
  return found;
}

/** Returns the tokens of a text that are not empty: line, column, text, and the innermost scope. */
function tokens(grammar, text) {
  const found = [];
  let stack = textmate.INITIAL;
  text.split('\n').forEach((line, i) => {
    const done = grammar.tokenizeLine(line, stack);
    stack = done.ruleStack;
    for (const token of done.tokens) {
      const part = line.slice(token.startIndex, token.endIndex);
      const at = `${i + 1}:${token.startIndex + 1}`;
      if (part.trim() !== '') found.push({ at, text: part, scopes: token.scopes, scope: token.scopes.at(-1) });
    }
  });
  return found;
}

/** Notes a failure for each token that is not as it should be in a program that parses. */
function checkProgram(grammar, name, text, words) {
  for (const token of tokens(grammar, text)) {
    const where = `${name}:${token.at}: \`${token.text}\``;
    if (token.scopes.some((scope) => scope.startsWith('invalid'))) failures.push(`${where} is ${token.scope}`);
    else if (token.scopes.length < 2) failures.push(`${where} has no scope`);
    else if (words.has(token.text) && !/^(comment|string|variable\.other\.quoted|entity)/.test(token.scopes[1])
      && !WORD_SCOPES.test(token.scope)) failures.push(`${where} is ${token.scope}, but it is a keyword`);
  }
}

/** Notes a failure if a token of this text does not have a scope that starts so. */
function expect(grammar, text, part, scope) {
  const token = tokens(grammar, text).find((t) => t.text === part);
  if (!token?.scope.startsWith(scope)) failures.push(`\`${part}\` in \`${text}\` is ${token?.scope}, not ${scope}`);
}

async function main() {
  const wasm = fs.readFileSync(path.join(path.dirname(require.resolve('vscode-oniguruma')), 'onig.wasm'));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(GRAMMAR, 'utf8'), GRAMMAR),
  });
  const grammar = await registry.loadGrammar('source.anf');

  const keywords = listed('ir/src/text/lexer.rs', /^ {8}b"(\w+)" => Kind::\w+,$/gm, 19);
  const types = listed('ir/src/tables/dtype.rs', /^ {4}\w+ "(\w+)" \d+ \w+;$/gm, 20);
  const words = new Set([...keywords, ...types]);
  for (const word of words) {
    const [token] = tokens(grammar, word);
    if (token.text !== word || !WORD_SCOPES.test(token.scope)) failures.push(`\`${word}\` alone is ${token.scope}`);
    expect(grammar, `f(${word}=1)`, word, 'entity.other.attribute-name');
  }

  expect(grammar, 'let %x = nn.relu(%"a b".0);', 'nn.relu', 'entity.name.function');
  expect(grammar, 'let %x = nn.relu(%y.0);', '%x', 'variable');
  expect(grammar, 'let %x = %y.0;', '0', 'constant.numeric');
  expect(grammar, 'let %x = @f(-1.5e-3bf16);', '1.5e-3bf16', 'constant.numeric');
  expect(grammar, 'let %x = @f(nan(0x7f), inff);', 'inff', 'constant.numeric');
  expect(grammar, 'let %x = @f(!T);', '!T', 'entity.name.type');
  expect(grammar, 'let %x = @f(%y);', '@f', 'entity.name.function');
  expect(grammar, '/* a /* b */ c */ let', 'let', 'storage');
  expect(grammar, 'Tensor[(n,), float32]', 'n', 'variable.other.symbol');
  expect(grammar, '#[doc="a\\u{e9}"]', '\\u{e9}', 'constant.character.escape');
  for (const [text, part] of [['f(1q)', '1q'], ['"open', '"open'], ['"\\q"', '\\q'], ['%x & %y', '&']]) {
    expect(grammar, text, part, 'invalid');
  }

  const files = execFileSync('git', ['ls-files', '*.anf'], { encoding: 'utf8' }).split('\n').filter(Boolean);
  if (files.length < 200) failures.push(`only ${files.length} files were found`);
  for (const file of files) checkProgram(grammar, file, fs.readFileSync(file, 'utf8'), words);

  for (const failure of failures.slice(0, 50)) console.error(failure);
  if (failures.length > 0) process.exit(1);
  console.log(`${files.length} files, ${words.size} keywords and element types`);
}

main();
