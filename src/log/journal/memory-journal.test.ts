/**
 * The memory journal keeps the promises of a journal, and its switches do what they say.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seconds, seq } from "../../core/base/index.ts";
import { createHandClock } from "../../std/index.ts";
import { appendSizes, journalContract, sealed } from "../contract/journal-contract.ts";
import { collect, each, failsWith } from "../contract/vocabulary.ts";
import type { MemoryJournal } from "./memory-journal.ts";
import { createMemoryJournal, createMemoryJournalStore, expireLead } from "./memory-journal.ts";

const TTL = seconds(3);

function world() {
  const clock = createHandClock({ at: 1_000_000 });
  const store = createMemoryJournalStore(clock);
  const notices: string[] = [];
  const handle = (): MemoryJournal => createMemoryJournal({ store, onNotice: (line) => notices.push(line) });
  return { clock, store, notices, handle };
}

journalContract("the memory journal", async () => {
  const { clock, handle } = world();
  return { handle: async () => handle(), pass: (ms) => clock.advance(ms), dispose: async () => {} };
});

test("an append that was lost, or whose answer was, is unknown; repeated it is stored once", async () => {
  const journal = world().handle();
  journal.fault({ loseAppends: 1, loseAnswers: 1 });
  const entry = sealed(await journal.head(), 2);
  const answers = [await journal.append(entry), await journal.append(entry), await journal.append(entry)];
  assert.deepEqual(each(answers, "type"), ["unknown", "unknown", "appended"]);
  assert.equal((await collect(journal.read(seq(0)))).length, 1);
});

test("a node that is cut off hears nothing and is heard by none; one way, what it asks is done", async () => {
  const { handle, notices } = world();
  const [ann, bob] = [handle(), handle()];
  const head = await ann.head();
  ann.fault({ cut: "both" });
  await assert.rejects(ann.head(), failsWith("unreachable"));
  assert.equal((await ann.append(sealed(head, 1))).type, "unknown");
  assert.equal((await bob.head()).seq, 0);
  ann.fault({ cut: "answers" });
  assert.equal((await ann.append(sealed(head, 1))).type, "unknown");
  assert.equal((await bob.head()).seq, 1);
  ann.fault({ cut: "none" });
  assert.equal((await ann.head()).seq, 1);
  assert.deepEqual(notices, ["the journal is cut off", "the journal is back"]);
});

test("an append that is held reaches the store only when it is let go", async () => {
  const journal = world().handle();
  const gate = Promise.withResolvers<void>();
  journal.fault({ hold: gate.promise });
  const answer = journal.append(sealed(await journal.head(), 1));
  assert.equal((await journal.head()).seq, 0);
  gate.resolve();
  assert.equal((await answer).type, "appended");
});

test("a journal that is full says so, and takes the batch when there is room", async () => {
  const journal = world().handle();
  journal.fault({ fullFor: 1 });
  await assert.rejects(appendSizes(journal, [1]), failsWith("journal-full"));
  assert.equal((await appendSizes(journal, [1])).seq, 1);
});

test("C18 a leader that is cut off stops holding before another can lead, and is told why", async () => {
  const { clock, handle } = world();
  const [ann, bob] = [handle(), handle()];
  const lead = await ann.acquireLead("ann", TTL);
  const next = bob.acquireLead("bob", TTL);
  await clock.advance(2000);
  ann.fault({ cut: "both" });
  assert.ok(lead.holds());
  // Renewed last at 2000: it may be used until 4700, and another may have it from 5000 on.
  await clock.advance(2699);
  assert.ok(lead.holds());
  await clock.advance(1);
  assert.ok(!lead.holds());
  const { reason, message } = await lead.lost;
  assert.equal(reason, "expired");
  assert.match(message, /not renewed in 2700 ms: .*cut off/);
  assert.equal((await bob.nodes()).lead?.node, "ann");
  await clock.advance(300);
  assert.equal((await next).epoch, lead.epoch + 1);
});

test("a leader whose lead was taken learns it with its next renewal", async () => {
  const { clock, store, handle } = world();
  const lead = await handle().acquireLead("ann", TTL);
  expireLead(store);
  await handle().acquireLead("bob", TTL);
  await clock.advance(1000);
  assert.equal((await lead.lost).reason, "taken");
});
