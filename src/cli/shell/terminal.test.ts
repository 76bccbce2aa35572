/**
 * The verbs' own `fetch` and the client's beside the global one: what a client would see of the same answers.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answering } from "../../../test/kits/loopback.ts";
import { usualFetch } from "../../client/http-fetch.ts";
import { ClientError, createClient, type Fetch } from "../../client/index.ts";
import { verbFetch } from "./terminal.ts";

const FETCHES: readonly [name: string, fetch: Fetch][] = [
  ["the global fetch", (url, request) => globalThis.fetch(url, request)],
  ["the verbs' own", verbFetch],
  ["the client's own", usualFetch],
];
const never = (): AbortSignal => new AbortController().signal;

for (const [name, fetch] of FETCHES) {
  test(`${name}: method, headers and body arrive, and so do status, headers and text`, async () => {
    await using server = await answering(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      const { method, url, headers } = request;
      response.writeHead(418, { "x-said": "yes" });
      response.end(`${method} ${url} ${headers["x-asked"]} ${headers["content-length"]} ${body} – ✔`);
    });
    const answer = await fetch(`${server.url}/a%20b?c=d`, {
      ...{ method: "POST", headers: { "x-asked": "1" }, redirect: "manual", signal: never(), body: "žluť" },
    });
    assert.deepEqual([answer.status, answer.headers.get("X-Said"), answer.headers.get("none")], [418, "yes", null]);
    assert.equal(await answer.text(), "POST /a%20b?c=d 1 6 žluť – ✔");
  });

  test(`${name}: a redirect is an answer and is not followed`, async () => {
    await using server = await answering((_, response) => response.writeHead(302, { location: "/else" }).end());
    const answer = await fetch(server.url, { headers: {}, redirect: "manual", signal: never() });
    assert.deepEqual([answer.status, answer.headers.get("location"), await answer.text()], [302, "/else", ""]);
  });

  test(`${name}: a signal ends the wait for an answer, and the reading of one`, async () => {
    await using server = await answering((request, response) => {
      if (request.url === "/begun") response.write("one");
    });
    const waiting = new AbortController();
    const asked = fetch(`${server.url}/`, { headers: {}, redirect: "manual", signal: waiting.signal });
    waiting.abort();
    await assert.rejects(asked, { name: "AbortError" });
    const reading = new AbortController();
    const answer = await fetch(`${server.url}/begun`, { headers: {}, redirect: "manual", signal: reading.signal });
    await assert.rejects(async () => {
      for await (const bytes of answer.body ?? []) {
        assert.equal(Buffer.from(bytes).toString(), "one");
        reading.abort();
      }
    });
    const left = new AbortController();
    await fetch(`${server.url}/begun`, { headers: {}, redirect: "manual", signal: left.signal });
    left.abort();
  });

  test(`${name}: an answer that breaks off, and a server that is not there, in the client's words`, async () => {
    const calls: string[] = [];
    await using server = await answering((request, response) => {
      calls.push(request.url ?? "");
      response.writeHead(200, { "content-length": "100" });
      response.write("{", () => response.destroy());
    });
    const options = { fetch, retries: 1, rest: async () => {} };
    const isNetwork = (error: unknown): boolean => error instanceof ClientError && error.code === "network";
    await assert.rejects(createClient({ ...options, url: server.url }).task("a"), isNetwork);
    await assert.rejects(createClient({ ...options, url: server.url }).retry("a"), isNetwork);
    // What may be asked twice is; the other call may have done its work.
    assert.deepEqual(calls, ["/tasks/a", "/tasks/a", "/tasks/a/retry"]);
    const gone = server.url;
    await server[Symbol.asyncDispose]();
    const start = `drover serve --port ${new URL(gone).port}`;
    const message = `cannot reach ${gone} (ECONNREFUSED); is it running? Start it with: ${start}`;
    await assert.rejects(createClient({ ...options, url: gone }).task("a"), { message });
  });
}
