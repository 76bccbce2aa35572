/**
 * The page at `/`: what waits, who works, how far plans are, what has happened last, by the same calls anybody may
 * make. What parked tasks ask can be answered there, and plans are paused, resumed and cancelled.
 *
 * It is one text without anything from elsewhere. Its policy lets run exactly the script and the style that stand here,
 * by their hashes, and lets it call nothing but this server. Whatever a task is called is put in as text and never
 * as markup. Where the server wants a token the page asks for one and keeps it for as long as the tab is open.
 */
import { createHash } from "node:crypto";

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884; }
td { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; vertical-align: top; }
td.number, th.number { text-align: right; }
td.number, td.whole { white-space: nowrap; }
td.failed { color: #c33; } td.parked, td.paused { color: #a70; }
button { font: inherit; margin-left: .5rem; padding: 0 .6rem; white-space: nowrap; }
@media (max-width: 60rem) { table { display: block; overflow-x: auto; } td { min-width: 4rem; } }
.quiet { opacity: .7; }
[hidden] { display: none; }
`;

const SCRIPT = `
const $ = (id) => document.getElementById(id);
const token = () => sessionStorage.getItem("drover-token");
async function get(path, more = {}) {
  const headers = { ...more.headers, ...(token() ? { authorization: "Bearer " + token() } : {}) };
  const answer = await fetch(path, { ...more, headers });
  if (answer.status === 401) $("login").hidden = false;
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer.json();
}
function fill(id, rows, none) {
  const body = $(id).tBodies[0];
  body.replaceChildren(...(rows.length ? rows : [[none]]).map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells.map(cellOf));
    return row;
  }));
}
// A cell is text, a number, or { text, className, buttons }; text is put in as text and never as markup.
function cellOf(given) {
  const isNumber = typeof given === "number";
  const { text = given, className = isNumber ? "number" : "", buttons = [] } = Object(given);
  const shown = isNumber ? count(given) : typeof text === "object" ? "" : text ?? "";
  const cell = Object.assign(document.createElement("td"), { textContent: shown, className });
  cell.append(...buttons.map((one) => Object.assign(document.createElement("button"), one)));
  return cell;
}
const count = (value) => String(value).replace(/\\B(?=(\\d{3})+$)/g, "\\u202f");
async function tell(what, id, act, body, done) {
  try {
    const headers = { "content-type": "application/json" };
    const path = "/" + what + "/" + encodeURIComponent(id) + "/" + act;
    await get(path, { method: "POST", headers, body: JSON.stringify(body) });
    $("said").textContent = id + done;
  } catch (error) {
    $("said").textContent = error.message;
  }
  await look();
}
const answer = (id, said) => tell("tasks", id, "approve", said, said.deny ? " is denied." : " is approved.");
function deny(id) {
  const note = prompt("Why is " + id + " denied? It fails with this.", "");
  return note === null ? undefined : answer(id, note === "" ? { deny: true } : { deny: true, note });
}
function noteOf({ taskId, state, error, approval }) {
  if (state !== "parked") return { text: error ?? "", className: error ? "failed" : "" };
  if (approval === undefined || approval.at !== undefined) return { text: "Its children have not ended." };
  const buttons = [
    { textContent: "Approve", onclick: () => answer(taskId, {}) },
    { textContent: "Deny", onclick: () => deny(taskId) },
  ];
  return { text: approval.question ?? "Somebody must approve it.", buttons };
}
function cancel(id) {
  const isMeant = confirm("Cancel all of " + id + " that has not ended? What runs is stopped.");
  return isMeant ? tell("plans", id, "cancel", {}, " is cancelled.") : undefined;
}
function buttonsOf({ id, state, endedAt }) {
  if (endedAt !== undefined) return [];
  const [word, done] = state === "paused" ? ["Resume", " goes on."] : ["Pause", " is paused: what runs may end."];
  return [
    { textContent: word, onclick: () => tell("plans", id, word.toLowerCase(), {}, done) },
    { textContent: "Cancel", onclick: () => cancel(id) },
  ];
}
const numberCell = (text, more = "") => ({ text, className: "number " + more });
const some = (value = 0, more) => numberCell(value === 0 ? "" : count(value), more);
function planRow(plan) {
  const { id, total, usage, counts: { done = 0, assigned = 0, running = 0, failed, parked } } = plan;
  const cost = usage?.cost === undefined ? "" : String(Math.round(usage.cost * 10000) / 10000);
  return [id, stateOf(plan), numberCell(count(done) + " of " + count(total)), some(assigned + running),
    some(failed, "failed"), some(parked, "parked"), tokensOf(plan), numberCell(cost),
    { className: "whole", buttons: buttonsOf(plan) }];
}
const stateOf = ({ state }) => ({ text: state, className: "whole " + state });
const labelsOf = ({ labels = {} }) => Object.entries(labels).map(([key, value]) => key + "=" + value).join(" ");
const tokensOf = ({ usage }) => usage ? usage.inputTokens + usage.outputTokens : "";
const taskRow = (one) =>
  [one.taskId, one.agentId, one.action, stateOf(one), noteOf(one), labelsOf(one), tokensOf(one),
    { text: new Date(one.createdAt).toLocaleString(), className: "whole" }];
// Pages carry bodies, which may be large, so a page may end early; and nothing is read while nothing has happened.
let shownAt = -1;
async function fillLast(seq) {
  if (seq === shownAt) return;
  // What asks somebody stays on top, however much is submitted after it.
  const asking = (await get("/tasks?state=parked&order=newest&limit=20")).tasks;
  const known = new Set(asking.map((one) => one.taskId));
  const rows = [];
  let cursor = "";
  do {
    const page = await get("/tasks?order=newest&limit=" + (20 - rows.length) + (cursor && "&cursor=" + cursor));
    rows.push(...page.tasks.filter((one) => !known.has(one.taskId)).map(taskRow));
    cursor = page.nextCursor;
  } while (cursor && rows.length < 20);
  fill("tasks", [...asking.map(taskRow), ...rows], "No task yet.");
  fill("plans", (await get("/plans?limit=10")).plans.map(planRow), "No plan yet.");
  shownAt = seq;
}
async function look() {
  try {
    const { seq } = await get("/readyz");
    const [queue, workers] = await Promise.all([get("/scheduler/queue"), get("/workers"), fillLast(seq)]);
    $("sum").textContent = count(queue.inFlight) + " running, " + count(queue.queued) + " queued, " +
      count(queue.waiting) + " waiting" + (queue.paused ? "; paused" : "");
    fill("queue", queue.projects.map((one) => [one.project, one.queued, one.inFlight, one.status]),
      "Nothing is queued.");
    fill("workers", workers.workers.map((one) => [one.id, one.kind, one.status, one.inFlight + " of " + one.slots]),
      "No worker is here yet.");
    $("login").hidden = true;
  } catch (error) {
    $("sum").textContent = error.message;
  }
}
async function lookOn() {
  await look();
  setTimeout(lookOn, 2000);
}
$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("drover-token", $("token").value);
  shownAt = -1;
  look();
});
lookOn();
`;

export const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const ENCLOSED = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/** A page may load what is listed here, call this server, and nothing else. */
export const policyOf = (...allowed: readonly string[]): string =>
  ["default-src 'none'", ...allowed, "connect-src 'self'", ENCLOSED].join("; ");

export const STATUS_PAGE_POLICY: string = policyOf(
  `script-src ${hashOf(SCRIPT)}`,
  `style-src ${hashOf(STYLE)}`,
  "img-src 'self'",
);

const NUMBERS: readonly string[] = ["Queued or waiting", "Running", "Tokens", "Done", "Failed", "Parked", "Cost"];
const heading = (title: string): string => `<th${NUMBERS.includes(title) ? ' class="number"' : ""}>${title}</th>`;
const table = (id: string, title: string, columns: readonly string[]): string =>
  `<h2>${title}</h2><table id="${id}"><thead><tr>${columns.map(heading).join("")}</tr></thead>` +
  "<tbody></tbody></table>";

export const STATUS_PAGE: string = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Drover</title><style>${STYLE}</style>
</head>
<body>
<h1>Drover</h1>
<p id="sum" class="quiet">Looking…</p>
<p id="said"></p>
<form id="login" hidden>
<label>This server wants a token: <input id="token" type="password" autocomplete="off"></label> <button>Use it</button>
</form>
${table("queue", "Queue", ["Project", "Queued or waiting", "Running", "Status"])}
${table("workers", "Workers", ["Worker", "Kind", "Status", "Busy"])}
${table("plans", "Plans put last", ["Plan", "State", "Done", "Running", "Failed", "Parked", "Tokens", "Cost", ""])}
${table("tasks", "Last submitted", ["Task", "Agent", "Action", "State", "Note", "Labels", "Tokens", "Submitted"])}
<p class="quiet"><a href="/docs/">The API</a> · <a href="/openapi.json">openapi.json</a></p>
<script>${SCRIPT}</script>
</body>
</html>
`;
