// Shows recordings in xterm.js's headless engine.
//
// usage: node xterm.cjs NODE_MODULES < shows.json > shown.json
//
// In: an array of { file, rows, columns }: the bytes of a file, in a window of that size.
// Out: for each { lines, rows }: all lines, joined where the engine wrapped them, and the visible rows;
// both without the blanks at their ends.

const fs = require("fs");
const path = require("path");
const { Terminal } = require(path.join(process.argv[2], "@xterm/headless"));

async function show({ file, rows, columns }) {
  const terminal = new Terminal({
    rows,
    cols: columns,
    scrollback: 50000,
    allowProposedApi: true,
    windowOptions: { setWinLines: true }, // A switch to 80 columns clears the window.
  });
  await new Promise((done) => terminal.write(fs.readFileSync(file), done));
  const buffer = terminal.buffer.active;
  const lines = [];
  for (let at = 0; at < buffer.length; at += 1) {
    const line = buffer.getLine(at);
    const next = buffer.getLine(at + 1);
    const text = line.translateToString(!(next && next.isWrapped));
    if (line.isWrapped && lines.length > 0) lines[lines.length - 1] += text;
    else lines.push(text);
  }
  const shown = [];
  for (let row = 0; row < rows; row += 1) {
    shown.push(buffer.getLine(buffer.baseY + row).translateToString(true));
  }
  terminal.dispose();
  const trimmed = (all) => all.map((it) => it.trimEnd());
  return { lines: trimmed(lines), rows: trimmed(shown) };
}

(async () => {
  const shows = JSON.parse(fs.readFileSync(0, "utf8"));
  const shown = [];
  for (const it of shows) shown.push(await show(it));
  process.stdout.write(JSON.stringify(shown));
})();
