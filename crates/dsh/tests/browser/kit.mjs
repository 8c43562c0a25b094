// What the scripts beside this share: an agent that speaks MCP over HTTP, and a browser to watch it with.
//
// usage: node SCRIPT ADDRESS (as the server prints it, with `#token=…`)

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// Neither is installed beside anything of ours: these say where.
const from = (folder) => createRequire(process.env[folder] + "/");
const load = (folder, name) => import(pathToFileURL(from(folder).resolve(name)).href);
const { Client } = await load("MCP_SDK_NODE_MODULES", "@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = await load(
  "MCP_SDK_NODE_MODULES", "@modelcontextprotocol/sdk/client/streamableHttp.js");
const { chromium } = from("PLAYWRIGHT_NODE_MODULES")("playwright-core");

// For what will come; a machine may be slow.
const PATIENCE = 60_000;

export const address = process.argv[2];
export const origin = new URL(address).origin;
const token = new URLSearchParams(new URL(address).hash.slice(1)).get("token");

// An agent: each call gives its text, with the notices that came along, and the code of a failure.
export class Agent {
  static async connect() {
    const client = new Client({ name: "browser", version: "1.0.0" });
    const requestInit = { headers: { Authorization: `Bearer ${token}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", origin), { requestInit }));
    return new Agent(client);
  }

  constructor(client) {
    this.client = client;
    // Everything that was told.
    this.heard = "";
  }

  async call(name, args) {
    const result = await this.client.callTool({ name, arguments: args });
    const [text, ...notices] = result.content.map((block) => block.text);
    this.heard += result.content.map((block) => block.text).join("\n");
    return { text, notices: notices.join("\n"), code: result._meta?.["dsh/error"]?.code };
  }

  async open(name) {
    const { text } = await this.call("terminal_open", { type: "shell", ...(name && { name }) });
    return /pty-\d+/.exec(text)[0];
  }

  send(sessionId, text, more = {}) {
    return this.call("terminal_send", { sessionId, text, ...more });
  }

  async close() {
    await this.client.transport.terminateSession();
    await this.client.close();
  }
}

// A browser whose pages may complain of nothing.
export class Browser {
  static async launch() {
    const browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync"],
    });
    return new Browser(browser);
  }

  constructor(browser) {
    this.browser = browser;
    this.complaints = [];
  }

  // A page of somebody who has the address, with cookies of its own.
  async page(options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB", ...options });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && this.complaints.push(message.text()));
    page.on("pageerror", (error) => this.complaints.push(error.stack));
    page.on("dialog", (dialog) => this.complaints.push(`a dialog: ${dialog.message()}`));
    page.on("request", (request) => {
      if (!request.url().startsWith(`${origin}/`)) this.complaints.push(`a request: ${request.url()}`);
      if (request.url().includes(token)) this.complaints.push(`the token in a request: ${request.url()}`);
    });
    await page.goto(address);
    await connected(page);
    assert.equal(page.url(), `${origin}/`, "the token does not stay in the address");
    return page;
  }

  // What the pages show, for whoever has to find out why a script failed.
  async describe() {
    const pages = this.browser.contexts().flatMap((context) => context.pages());
    const texts = await Promise.all(pages.map((page) => page.locator("body").innerText()));
    return [...this.complaints, ...texts].join("\n----\n");
  }
}

export const connected = (page) => page.locator("#connection[data-state=open]").waitFor();

// A row of the terminal with this text.
export const row = (page, text) => page.locator(".xterm-rows > div", { hasText: text }).last();

export const shown = (page, text) => row(page, text).waitFor();

export async function choose(page, session) {
  await page.locator("#agents").getByRole("button", { name: new RegExp(`^${session}\\b`) }).click();
  await page.locator("#session-title", { hasText: session }).waitFor();
}

export const mine = (page) => page.locator(".screen.mine").waitFor();
export const notMine = (page) => page.locator(".screen:not(.mine)").waitFor();

export async function takeOver(page) {
  await page.getByRole("button", { name: "Take over" }).click();
  await mine(page);
}

export async function giveBack(page) {
  await page.getByRole("button", { name: "Give back" }).click();
  await notMine(page);
}

export async function noOverflow(page) {
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(beyond, 0, "the page is wider than its window");
}

// Runs the script: an agent, a browser, their end.
export async function run(script) {
  const agent = await Agent.connect();
  const browser = await Browser.launch();
  try {
    await script(agent, browser);
    assert.deepEqual(browser.complaints, []);
  } catch (error) {
    console.log(await browser.describe());
    throw error;
  } finally {
    await browser.browser.close();
    await agent.close();
  }
  console.log("ok");
}
