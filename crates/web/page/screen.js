// The terminal of the watched session: xterm.js as a mere picture until the person holds the lease.

import './strict-style.js';
import { Terminal } from './xterm.mjs';

// Output that waits to be drawn. A page with more than this behind it asks for a new picture instead.
const MOST_WAITING = 2 * 1024 * 1024;
// A message to the server stays well below the largest frame that it takes.
const MOST_TYPED = 8 * 1024;

const RESET = new TextEncoder().encode('\x1bc');
const FONT = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const LARGEST_FONT = 14;
const SMALLEST_FONT = 9;
// What the scroll bar takes beside the columns.
const SCROLL_BAR = 14;

const LIGHT = {
  background: '#fbfbfa', foreground: '#24292e', cursor: '#0f6b5c', cursorAccent: '#fbfbfa', selectionBackground: '#bfdcd6',
  black: '#24292e', red: '#b3261e', green: '#1a7f37', yellow: '#8a5a00', blue: '#0b57d0', magenta: '#8430a8', cyan: '#0b6e80',
  white: '#6e7781', brightBlack: '#57606a', brightRed: '#cf222e', brightGreen: '#2da44e', brightYellow: '#9a6700',
  brightBlue: '#218bff', brightMagenta: '#a475f9', brightCyan: '#3192aa', brightWhite: '#8c959f',
};
const DARK = {
  background: '#101413', foreground: '#d7dcda', cursor: '#5cc8b2', cursorAccent: '#101413', selectionBackground: '#2c4f49',
  black: '#3b4240', red: '#f2777a', green: '#7fc87f', yellow: '#e0b668', blue: '#7aa9f0', magenta: '#c99aec', cyan: '#6cc9cf',
  white: '#c4cac8', brightBlack: '#818a87', brightRed: '#ff9a9c', brightGreen: '#a2e0a2', brightYellow: '#f3cf8b',
  brightBlue: '#a3c5ff', brightMagenta: '#dfbcf8', brightCyan: '#97e3e8', brightWhite: '#ffffff',
};

const dark = matchMedia('(prefers-color-scheme: dark)');
const theme = () => (dark.matches ? DARK : LIGHT);

// Width of a character as a part of its font's size.
function widthOfCharacter() {
  const context = document.createElement('canvas').getContext('2d');
  context.font = `100px ${FONT}`;
  return context.measureText('0').width / 100;
}

function joined(first, second) {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

export class Screen {
  // `on` has `typed(text)`, `leave()`, and `behind()`: a new picture is wanted.
  constructor(host, on) {
    this.host = host;
    this.on = on;
    this.columns = 80;
    this.writable = false;
    this.queue = [];
    this.waiting = 0;
    this.drawing = false;
    this.stale = true;
    this.terminal = new Terminal({
      cols: 80, rows: 24, fontFamily: FONT, fontSize: 13, scrollback: 2000, disableStdin: true, cursorInactiveStyle: 'outline',
      theme: theme(), minimumContrastRatio: 4.5, allowProposedApi: false, linkHandler: { activate() {} },
    });
    this.terminal.attachCustomKeyEventHandler((event) => this.key(event));
    this.terminal.onData((data) => this.data(data));
    this.terminal.open(host);
    this.ratio = widthOfCharacter();
    dark.addEventListener('change', () => { this.terminal.options.theme = theme(); });
    // Nobody looks at a hidden page, and a browser lets it do little: it catches up once it is seen again.
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden && this.stale) this.on.behind();
    });
    new ResizeObserver(() => this.fit()).observe(host);
  }

  // Another session: what was drawn, or waits to be, is of no use.
  clear() {
    this.queue = [];
    this.waiting = 0;
    this.stale = true;
    this.terminal.reset();
  }

  resize(columns, rows) {
    this.columns = columns;
    this.terminal.resize(columns, rows);
    this.fit();
  }

  // The session decides how many columns there are; the page how large they are.
  fit() {
    const room = this.host.clientWidth - SCROLL_BAR;
    if (room <= 0) return;
    const size = Math.floor((2 * room) / (this.columns * this.ratio)) / 2;
    this.terminal.options.fontSize = Math.max(SMALLEST_FONT, Math.min(LARGEST_FONT, size));
  }

  output(replaces, bytes) {
    if (replaces) {
      this.queue = [];
      this.waiting = 0;
      this.stale = false;
    } else if (this.stale) {
      return;
    }
    this.queue.push(replaces ? joined(RESET, bytes) : bytes);
    this.waiting += bytes.length;
    if (this.waiting > MOST_WAITING) {
      this.queue = [];
      this.waiting = 0;
      this.stale = true;
      if (!document.hidden) this.on.behind();
    }
    this.draw();
  }

  // One frame after the other: the next when the terminal has drawn the last, so that the page stays usable.
  draw() {
    if (this.drawing || this.queue.length === 0) return;
    const bytes = this.queue.shift();
    this.waiting = Math.max(0, this.waiting - bytes.length);
    this.drawing = true;
    this.terminal.write(bytes, () => {
      this.drawing = false;
      this.follow();
      this.draw();
    });
  }

  // On a narrow page whoever types sees the cursor.
  follow() {
    const { clientWidth, scrollLeft, scrollWidth } = this.host;
    if (!this.writable || scrollWidth <= clientWidth) return;
    const cursor = (this.terminal.buffer.active.cursorX / this.columns) * (scrollWidth - SCROLL_BAR);
    if (cursor < scrollLeft || cursor > scrollLeft + clientWidth - SCROLL_BAR) this.host.scrollLeft = cursor - clientWidth / 2;
  }

  setWritable(writable) {
    this.writable = writable;
    this.terminal.options.disableStdin = !writable;
    this.host.classList.toggle('mine', writable);
  }

  setAloud(aloud) {
    this.terminal.options.screenReaderMode = aloud;
  }

  focus() {
    this.terminal.focus();
  }

  // True lets xterm.js have the key.
  key(event) {
    if (event.ctrlKey && event.altKey && event.code === 'Period') {
      if (event.type === 'keydown') this.on.leave();
      event.preventDefault();
      return false;
    }
    // Without the lease the page keeps its keys (Tab leads on), but for those that scroll.
    return this.writable || (event.shiftKey && ['PageUp', 'PageDown', 'Home', 'End'].includes(event.key));
  }

  data(data) {
    // That the window got or lost the focus is nothing that a person typed.
    if (!this.writable || data === '\x1b[I' || data === '\x1b[O') return;
    for (let start = 0; start < data.length;) {
      let end = Math.min(start + MOST_TYPED, data.length);
      // Never between the halves of a character.
      if (end < data.length && /[\uD800-\uDBFF]/.test(data[end - 1])) end -= 1;
      this.on.typed(data.slice(start, end));
      start = end;
    }
  }
}
