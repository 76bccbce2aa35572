/**
 * The calls of a server, for a plan that runs alone: its commands submit children by them, and while it runs, `drover
 * why`, `task`, `events`, `approve` and `cancel` in another terminal reach into it.
 *
 * It listens on this machine alone. Who calls has the token of an attempt, or the one in its server.json, which only
 * the owner of the data directory can read. What a server is made of takes longer to load than a short plan takes to
 * run, so it is loaded with the first call, or once the run has lasted a moment. A call that is early waits.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { badField, isRecord, type Refusal, sentence } from "../../core/base/index.ts";
import { actionName, EXEC, EXEC_COMMAND, EXEC_WORKTREE } from "../../core/fleet/index.ts";
import { refused } from "../../engine/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { refusedItem } from "../../engine/tasks/index.ts";
import { readSettings } from "../../protocol/index.ts";
import type { Server } from "../../server/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import { removeServerFile, writeServerFile } from "../shell/server-file.ts";
import { logsIn } from "./task-logs.ts";

/** A run that is over by then is asked by nobody but its own commands. */
const MOMENT_MS = 500;
const HOST = "127.0.0.1";
const CALLERS_MAX = 1000;
/** Where nothing listens: what a command submits in vain must not go to a server that happens to be near. */
const NOWHERE = `http://${HOST}:9`;

export type RunApi = {
  /** Where it is, from the beginning. */
  readonly url: string;
  /** From now on calls are answered, by this engine. */
  serve(drover: Drover): void;
  /** Ends it, and the engine with it. */
  close(): Promise<void>;
};

type ApiParts = { readonly data: string; readonly noted: (text: string) => void; readonly clock: Clock };

export async function openApi({ data, noted, clock }: ApiParts): Promise<RunApi> {
  const engine = Promise.withResolvers<Drover>();
  let drover: Drover | null = null;
  let starting: Promise<Server | null> | null = null;
  let cancel = (): void => {};

  function start(): Promise<Server | null> {
    starting ??= engine.promise
      .then((one) => startOn(one, data))
      .catch((error: Error) => {
        noted(unreached(error));
        return null;
      });
    return starting;
  }

  /** The server takes it over as if it had come there. */
  async function pass(socket: Socket): Promise<void> {
    const server = await start();
    const [own] = server?.listener.servers ?? [];
    if (own === undefined) socket.destroy();
    else own.emit("connection", socket);
  }

  const door = await listen((socket) => {
    socket.on("error", () => socket.destroy());
    void pass(socket);
  }).catch((error: Error) => {
    noted(unreached(error));
    return null;
  });

  return {
    url: door === null ? NOWHERE : `http://${HOST}:${(door.address() as AddressInfo).port}`,
    serve(one) {
      drover = one;
      engine.resolve(one);
      cancel = ringAfter(clock, MOMENT_MS, () => void start());
    },
    async close() {
      cancel();
      door?.close();
      const server = drover === null ? null : await starting;
      if (server === null) return await drover?.close();
      removeServerFile(data, server.id);
      await server.close({ graceMs: 0 });
    },
  };
}

const unreached = ({ message }: Error): string =>
  `neither its commands nor other terminals reach into this run: ${message}`;

async function listen(onCaller: (socket: Socket) => void): Promise<NetServer> {
  // As a server of node:http has it, which these are passed on to.
  const door = createServer({ allowHalfOpen: true, noDelay: true }, onCaller);
  door.maxConnections = CALLERS_MAX;
  door.listen({ host: HOST, port: 0 });
  await once(door, "listening");
  return door;
}

async function startOn(drover: Drover, data: string): Promise<Server> {
  const { startServer } = await import("../../server/index.ts");
  const token = randomBytes(24).toString("base64url");
  const settings = readSettings({ server: { port: 0, shutdownGrace: 0, tokens: [{ token, role: "admin" }] } });
  if (!settings.ok) throw new Error(JSON.stringify(settings.failure));
  const server = await startServer({ drover: withFitting(drover), settings: settings.value, logsOf: logsIn(data) });
  writeServerFile(data, { url: server.url, id: server.id, token });
  return server;
}

// -------------------------------------------------------------- what may grow

/** Nobody joins a run alone: a child that its workers never take would wait for ever, and the run with it. */
const withFitting = (drover: Drover): Drover => ({
  ...drover,
  submitChild: async (parent, attempt, body) => {
    const refusal = misfitOf(body);
    if (refusal !== null) throw refused(refusal);
    return await drover.submitChild(parent, attempt, body);
  },
  submitChildren: (parent, attempt, batch) => {
    const tasks = batch.tasks.map((item, index) => {
      const refusal = misfitOf(item, `tasks[${index}].`);
      return refusal === null ? item : refusedItem(item, sentence(refusal));
    });
    return drover.submitChildren(parent, attempt, { ...batch, tasks });
  },
});

/** Null if they may take it, or it is not even a task. */
function misfitOf(body: unknown, at = ""): Refusal | null {
  if (!isRecord(body)) return null;
  const { action, params, capabilities, tabId } = body;
  const given = isRecord(params) ? params : {};
  const known = typeof action === "string" ? actionName(action, given) : null;
  const alone = "since this plan runs alone: its workers";
  if (known === EXEC)
    return badField(`${at}params.command`, given.command, `what is to be run, ${alone} run commands only`);
  if (known !== null && known !== EXEC_COMMAND && known !== EXEC_WORKTREE)
    return badField(`${at}action`, action, `exec, with params.command, ${alone} run commands only`);
  if (Array.isArray(capabilities) && capabilities.length > 0)
    return badField(`${at}capabilities`, capabilities[0], `absent, ${alone} offer none`);
  return tabId === undefined ? null : badField(`${at}tabId`, tabId, `absent, ${alone} have no tabs`);
}
