import assert from "node:assert/strict";
import { test } from "node:test";
import type { PushTarget } from "../../core/model/index.ts";
import { checkPushTarget, type PushTask, pushRequest } from "./request.ts";

const AT: PushTarget = { endpoint: "http://127.0.0.1:9867/", path: null };
const built = (target: PushTarget, task: PushTask) => {
  const request = pushRequest(target, task, { attempt: 2, version: "1.2.3" });
  if (!request.ok) return request.failure;
  const { url, body, headers, method } = request.value;
  return { url: url.href, body: JSON.parse(body) as unknown, headers, method };
};
const urlOf = (target: PushTarget, task: PushTask): unknown => {
  const request = built(target, task);
  return typeof request === "string" ? request : request.url;
};
const bodyOf = (task: PushTask, path?: string): unknown => {
  const request = built({ ...AT, path: path ?? null }, task);
  return typeof request === "string" ? request : request.body;
};

test("seed 002: POST /tabs/{tabId}/action with {kind, ref, …params}", () => {
  const task = { taskId: "tsk_1", action: "click", tabId: "tab1", ref: "e5", params: { button: "left", n: 2 } };
  assert.deepEqual(built(AT, task), {
    url: "http://127.0.0.1:9867/tabs/tab1/action",
    method: "POST",
    body: { kind: "click", ref: "e5", button: "left", n: 2 },
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/*;q=0.9, */*;q=0.5",
      "User-Agent": "drover/1.2.3",
      "X-Drover-Task-ID": "tsk_1",
      "X-Drover-Attempt": "2",
      "Idempotency-Key": "tsk_1:2",
    },
  });
});

const full = { kind: "p-kind", ref: "p-ref", selector: "p-selector", tabId: "p-tab", other: 1 };
const bodies: [claim: string, task: PushTask, path: string | undefined, body: unknown][] = [
  [
    "P22 the task's own fields win over params",
    { taskId: "t", action: "click", tabId: "tab", ref: "r", selector: "#s", params: full },
    undefined,
    { kind: "click", ref: "r", selector: "#s", other: 1 },
  ],
  [
    "P22 params never stand for the action or the tab, but for ref and selector where the task has none",
    { taskId: "t", action: "go", params: full },
    undefined,
    { kind: "go", ref: "p-ref", selector: "p-selector", other: 1 },
  ],
  [
    "inputs are those of the task, and a parameter of that name only where it has none",
    { taskId: "t", action: "go", params: { inputs: "p" }, inputs: { n: { taskId: "n", state: "done", result: 1 } } },
    undefined,
    { kind: "go", inputs: { n: { taskId: "n", state: "done", result: 1 } } },
  ],
  [
    "one that the task has does not take the other away",
    { taskId: "t", action: "go", selector: "#s", params: full },
    undefined,
    { kind: "go", ref: "p-ref", selector: "#s", other: 1 },
  ],
  [
    "an empty ref of the task wins over one in params",
    { taskId: "t", action: "go", ref: "", params: { ref: "p-ref" } },
    undefined,
    { kind: "go", ref: "" },
  ],
  ["what a task does not have is absent", { taskId: "t", action: "go" }, undefined, { kind: "go" }],
  ["an empty ref was given, so it is sent", { taskId: "t", action: "go", ref: "" }, undefined, { kind: "go", ref: "" }],
  [
    "the tab is in the body where the path does not name it",
    { taskId: "t", action: "go", tabId: "tab", params: full },
    "/run",
    { kind: "go", tabId: "tab", ref: "p-ref", selector: "p-selector", other: 1 },
  ],
  ["and is not where it does", { taskId: "t", action: "go", tabId: "tab" }, "/t/{tabId}", { kind: "go" }],
];

for (const [claim, task, path, body] of bodies) test(claim, () => assert.deepEqual(bodyOf(task, path), body));

test("params with odd keys stay data", () => {
  const params = JSON.parse('{"__proto__":{"kind":"x"},"constructor":1}') as Record<string, unknown>;
  const request = pushRequest(AT, { taskId: "t", action: "go", params }, { attempt: 1, version: "" });
  assert.equal(request.ok && request.value.body, '{"__proto__":{"kind":"x"},"constructor":1,"kind":"go"}');
});

const paths: [endpoint: string, path: string | undefined, task: Partial<PushTask>, url: string][] = [
  ["http://h:1", undefined, {}, "http://h:1/action"],
  ["http://h:1/", undefined, { tabId: "a" }, "http://h:1/tabs/a/action"],
  ["https://h/base/", undefined, {}, "https://h/base/action"],
  ["https://h/base//", "/run", {}, "https://h/base/run"],
  ["http://h", "/{action}/{taskId}/{tabId}", { tabId: "b" }, "http://h/go/t/b"],
  ["http://h", "/{taskId}/{taskId}", {}, "http://h/t/t"],
  ["http://h", "/run?task={taskId}&x=1", { taskId: "a&b=c" }, "http://h/run?task=a%26b%3Dc&x=1"],
  ["http://h", undefined, { tabId: "a/../../b?c#d%2e" }, "http://h/tabs/a%2F..%2F..%2Fb%3Fc%23d%252e/action"],
  ["http://h", undefined, { tabId: "größe\ud800" }, "http://h/tabs/gr%C3%B6%C3%9Fe%EF%BF%BD/action"],
  ["http://h", "/{action}", { action: "{taskId}" }, "http://h/%7BtaskId%7D"],
  ["http://h", "/{tabId}", {}, "the path of its worker needs {tabId}, and the task has none"],
  ["http://h", undefined, { tabId: ".." }, "its tabId is .., which cannot stand in a path"],
  ["http://h", undefined, { tabId: "." }, "its tabId is ., which cannot stand in a path"],
  ["http://h", undefined, { tabId: "..." }, "http://h/tabs/.../action"],
];

for (const [endpoint, path, task, url] of paths)
  test(`${endpoint} and ${path ?? "(no path)"} with ${JSON.stringify(task)}: ${url}`, () =>
    assert.equal(urlOf({ endpoint, path: path ?? null }, { taskId: "t", action: "go", ...task }), url));

test("a header holds any id", () => {
  const request = built(AT, { taskId: "a\r\nb", action: "go" });
  assert.ok(typeof request !== "string");
  assert.equal(request.headers["X-Drover-Task-ID"], "a%0D%0Ab");
  assert.equal(request.headers["Idempotency-Key"], "a%0D%0Ab:2");
});

const targets: [endpoint: unknown, path: unknown, complaint: RegExp | null][] = [
  ["http://127.0.0.1:9867", undefined, null],
  ["https://browser.internal/base", "/tabs/{tabId}/run?x={taskId}", null],
  ["http://[::1]:80/", null, null],
  ["ftp://h", undefined, /endpoint .*http or https URL/],
  ["127.0.0.1:9867", undefined, /endpoint .*http or https URL/],
  ["http://h:0", undefined, /endpoint .*http or https URL/],
  [7, undefined, /endpoint .*http or https URL/],
  ["http://u:p@h/", undefined, /endpoint .*without credentials/],
  ["http://h/?token=x", undefined, /endpoint .*without credentials, query or fragment/],
  ["http://h/#x", undefined, /endpoint .*fragment/],
  ["http://h", "run", /path .*begins with/],
  ["http://h", 7, /path .*begins with/],
  ["http://h", "/run#x", /path .*fragment/],
  ["http://h", "/{tab}", /path .*\{tabId\}, \{taskId\}, \{action\}/],
  ["http://h", "/{}", /path .*filled in/],
];

for (const [endpoint, path, complaint] of targets)
  test(`a push worker at ${String(endpoint)} ${String(path)}: ${complaint === null ? "taken" : "refused"}`, () => {
    const check = (): void => checkPushTarget({ endpoint, path });
    if (complaint === null) check();
    else assert.throws(check, complaint);
  });

test("a refusal does not repeat a password", () => {
  assert.throws(
    () => checkPushTarget({ endpoint: "http://u:hunter2@h/" }),
    (error: Error) => !JSON.stringify({ ...error, message: error.message }).includes("hunter2"),
  );
});
