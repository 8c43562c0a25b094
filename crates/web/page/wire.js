// The WebSocket to the server: comes back by itself when it is lost, and then asks again for what was watched.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

const decoder = new TextDecoder();

export class Wire {
  // `on` has `open()`, `lost(pause)`, `message(object)`, `output(session, replaces, bytes)`.
  constructor(on) {
    this.on = on;
    this.watched = null;
    this.agent = null;
    this.failures = 0;
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/live`);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      this.failures = 0;
      this.on.open();
      if (this.watched !== null) this.send('watch', { session: this.watched });
      if (this.agent !== null) this.send('cards', { agent: this.agent });
    };
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') this.on.message(JSON.parse(data));
      else this.output(new Uint8Array(data));
    };
    socket.onclose = () => this.lost();
    this.socket = socket;
  }

  output(frame) {
    const start = 2 + frame[1];
    this.on.output(decoder.decode(frame.subarray(2, start)), frame[0] === 1, frame.subarray(start));
  }

  lost() {
    const pause = Math.min(FIRST_PAUSE * 2 ** this.failures, LONGEST_PAUSE) * (0.75 + Math.random() / 2);
    this.timer = setTimeout(() => this.connect(), pause);
    this.on.lost(pause);
    // A server that was started anew has another token, and a browser does not tell why a WebSocket was refused.
    if (this.failures > 0) this.askAgain();
    this.failures += 1;
  }

  async askAgain() {
    try {
      const answer = await fetch('/runs', { method: 'HEAD', cache: 'no-store' });
      if (answer.status === 401) location.reload();
    } catch {
      // The server is not there at all: the next try will tell.
    }
  }

  // Now, instead of after the pause.
  retry() {
    if (this.socket.readyState === WebSocket.CLOSED) this.connect();
  }

  // False where there is no connection: what a person typed is not kept for later.
  send(type, fields) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify({ type, ...fields }));
    return true;
  }

  // Of one session at a time; null watches none. The same again asks for a new picture.
  watch(session) {
    if (this.watched !== null && this.watched !== session) this.send('unwatch', { session: this.watched });
    this.watched = session;
    if (session !== null) this.send('watch', { session });
  }

  // The log of one agent at a time.
  follow(agent) {
    this.agent = agent;
    if (agent !== null) this.send('cards', { agent });
  }
}
