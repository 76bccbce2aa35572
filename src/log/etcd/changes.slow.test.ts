/**
 * One key as it changes, whatever becomes of the watch on it.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type EtcdCluster, etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { until, within } from "../../../test/kits/waits.ts";
import { realClock } from "../../std/index.ts";
import { readAddress } from "./address.ts";
import { type KeyValue, watchOf } from "./answers.ts";
import { changesOf } from "./changes.ts";
import { createClient, type EtcdClient } from "./client.ts";
import { createForgetting } from "./forgetting.ts";

describe("one key as it changes", { skip: etcdMissing }, () => {
  let etcd: EtcdCluster;
  let client: EtcdClient;
  before(async () => {
    etcd = await startEtcd();
    client = createClient(readAddress(etcd.url("changes")));
  });
  after(async () => {
    client.close();
    await etcd[Symbol.asyncDispose]();
  });

  /** The first watch is another one; how many were made so far. */
  function withFirstWatch(first: EtcdClient["watch"]) {
    let count = 0;
    const watch: EtcdClient["watch"] = (...call) => (count++ === 0 ? first(...call) : client.watch(...call));
    return { client: { ...client, watch }, made: () => count };
  }
  function follow(key: string, by: EtcdClient = client) {
    const end = new AbortController();
    const changes = changesOf({ client: by, key, clock: realClock, signal: end.signal, steadily: (work) => work() });
    const next = async (): Promise<string | null | undefined> => {
      const { value, done } = await within("a change", changes.next());
      return done === true ? undefined : ((value as KeyValue | null)?.value.toString() ?? null);
    };
    return { next, end };
  }
  const put = (key: string, value: string): Promise<number> => client.put(key, Buffer.from(value));

  test("it is told as it is, then each newer value, its end too, until the signal", async () => {
    const { next, end } = follow("plain");
    assert.equal(await next(), null);
    for (const value of ["one", "two"]) {
      const told = next();
      await put("plain", value);
      assert.equal(await told, value);
    }
    const gone = next();
    await client.txn({ compare: [], success: [{ remove: "plain" }] });
    assert.equal(await gone, null);
    const last = next();
    end.abort();
    assert.equal(await last, undefined);
  });

  test("a watch that would begin in forgotten history is cancelled, and the key is read anew", async () => {
    for (const value of ["one", "two"]) await put("old", value);
    await client.compact((await client.range({ key: "old" })).revision);
    await client.compact(1);
    const told: string[] = [];
    const ending = new AbortController();
    for await (const line of await client.watch("old", 1, ending.signal))
      if (told.push(watchOf(line).type) === 2) break;
    assert.deepEqual(told, ["created", "compacted"]);

    const late = withFirstWatch((key, _, signal) => client.watch(key, 1, signal));
    const { next, end } = follow("old", late.client);
    assert.equal(await next(), "two");
    const change = next();
    await until("the second watch", () => late.made() === 2);
    await put("old", "three");
    assert.equal(await change, "three");
    end.abort();
    await next();
  });

  test("a watch that stands and tells nothing is found out by a read, and given up", async () => {
    let isGivenUp = false;
    async function* silent(signal: AbortSignal): AsyncGenerator<unknown> {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      isGivenUp = true;
    }
    const { client: deaf } = withFirstWatch(async (_key, _from, signal) => silent(signal));
    await put("silent", "one");
    const { next, end } = follow("silent", deaf);
    assert.equal(await next(), "one");
    const change = next();
    await put("silent", "two");
    assert.equal(await change, "two");
    assert.ok(isGivenUp);
    end.abort();
    await next();
  });

  test("every so many writes, what keys were before is forgotten", async () => {
    const forgetting = createForgetting(client, 3);
    const isForgotten = async (revision: number): Promise<boolean> => {
      for await (const line of await client.watch("often", revision, new AbortController().signal)) {
        const { type } = watchOf(line);
        if (type !== "created") return type === "compacted";
      }
      return false;
    };
    const revisions: number[] = [];
    for (const value of ["one", "two", "three"]) {
      revisions.push(await put("often", value));
      assert.ok(!(await isForgotten(revisions[0] as number)));
      forgetting.wrote(revisions.at(-1) as number);
    }
    await until("history that is forgotten", () => isForgotten(revisions[1] as number));
    assert.equal((await client.get("often"))?.value.toString(), "three");
  });
});
