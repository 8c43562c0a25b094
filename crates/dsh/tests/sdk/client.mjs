// Drives `dsh mcp` with the official TypeScript MCP SDK: lists the tools and runs a command.
//
// usage: node client.mjs DSH_BINARY [--structured] [--http]

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The SDK is installed beside nothing of ours: NODE_PATH says where.
const require = createRequire(process.env.MCP_SDK_NODE_MODULES + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [binary, ...rest] = process.argv.slice(2);
const flags = rest.filter((flag) => flag !== "--http");
const structured = flags.includes("--structured");
let server;
let transport;
if (rest.includes("--http")) {
  const args = ["mcp", "--listen", "127.0.0.1:0", ...flags];
  server = spawn(binary, args, { stdio: ["ignore", "ignore", "pipe"] });
  process.on("exit", () => server.kill());
  const lines = createInterface({ input: server.stderr })[Symbol.asyncIterator]();
  const url = new URL((await lines.next()).value);
  const [name, value] = (await lines.next()).value.split(": ");
  transport = new StreamableHTTPClientTransport(url, { requestInit: { headers: { [name]: value } } });
} else {
  transport = new StdioClientTransport({ command: binary, args: ["mcp", ...flags], env: process.env });
}
const client = new Client({ name: "client.mjs", version: "1.0.0" });
await client.connect(transport);

const { tools } = await client.listTools();
assert.deepEqual(
  tools.map((tool) => tool.name),
  [
    "job_kill",
    "job_list",
    "job_output",
    "terminal_close",
    "terminal_keys",
    "terminal_lines",
    "terminal_list",
    "terminal_open",
    "terminal_read",
    "terminal_resize",
    "terminal_screen",
    "terminal_search",
    "terminal_send",
    "terminal_signal",
    "terminal_wait",
  ],
);
for (const tool of tools) assert.equal(tool.outputSchema !== undefined, structured, tool.name);

async function call(name, args) {
  const result = await client.callTool({ name, arguments: args });
  // What follows the first block are notices.
  const text = result.content[0].text;
  console.log(`--- ${name} ${JSON.stringify(args)}\n${text}`);
  assert.ok(!result.isError, text);
  assert.equal(result.structuredContent !== undefined, structured);
  return { text, value: result.structuredContent };
}

await call("terminal_open", { type: "shell" });
const sent = await call("terminal_send", { sessionId: "pty-1", text: "echo $((6 * 7)); (exit 5)" });
assert.match(sent.text, /\n42\n[^]*\[exit: 5\]\n\[wait: stdin_read\]\n\[session: running\]$/);
if (structured) {
  assert.equal(sent.value.waitReason, "stdin_read");
  assert.equal(sent.value.lastCommand.exitCode, 5);
}

// A send in the background: its id at once, its output as it comes, its end.
const background = { sessionId: "pty-1", run_in_background: true };
const text = "read -p 'go? ' x; echo one; sleep 2; echo two";
assert.equal((await call("terminal_send", { ...background, text })).text, "started background job pty-send-1");
const asked = await call("job_output", { job_id: "pty-send-1", wait: true });
assert.match(asked.text, /go\? \n\[state: waiting for input \(bash[^]*\[status: completed, wait: stdin_read\]$/);
await call("terminal_send", { ...background, text: "" });
const done = await call("job_output", { job_id: "pty-send-2", wait: true });
assert.match(done.text, /one\ntwo\ndsh> \n\[exit: 0\]\n\[status: completed, wait: stdin_read\]$/);
if (structured) assert.equal(done.value.job.label, "pty-1: (input)");
// One that is ended: the foreground gets a real interrupt.
await call("terminal_send", { ...background, text: "sleep 100" });
await call("job_kill", { job_id: "pty-send-3" });
const killed = await call("job_output", { job_id: "pty-send-3", wait: true });
assert.match(killed.text, /\[status: killed, wait: stdin_read\]$/);
// A notice comes with the next result.
const quick = { ...background, text: "true" };
let result = await client.callTool({ name: "terminal_send", arguments: quick });
while (result.content.length < 2) {
  result = await client.callTool({ name: "terminal_list", arguments: {} });
}
assert.match(result.content[1].text, /^background job pty-send-4 \(pty-send: pty-1: true\) finished /);
if (structured) {
  const list = await call("job_list", {});
  assert.equal(list.value.result.length, 4);
}

const listed = await call("terminal_list", {});
if (structured) assert.equal(listed.value.result[0].sessionId, "pty-1");
await call("terminal_close", { sessionId: "pty-1" });

const unknown = await client.callTool({ name: "terminal_close", arguments: { sessionId: "pty-1" } });
assert.ok(unknown.isError);
assert.equal(unknown._meta["dsh/error"].code, "NO_SESSION");
if (server) await transport.terminateSession();
await client.close();
if (server) {
  server.kill();
  const [code] = await once(server, "exit");
  assert.equal(code, 128 + 15);
}
console.log("ok");
