/**
 * The connections of one node: a few lanes, each a connection on which one question follows another.
 *
 * Renewing the lead must not wait behind a batch of megabytes, so what is urgent has a lane of its own. A lane connects
 * when it is first asked, and again after its connection broke. Every question is one statement and so one transaction:
 * there is no session to lose, a pooler may give each to another connection, and a process that is frozen between two
 * statements holds no lock. A question that is not answered in time ends its connection, and the answer is unknown.
 */
import { Socket } from "node:net";
import type { Client, QueryResultRow } from "pg";
import { answerWithin, type Clock } from "../../std/index.ts";
import type { HostAndPort } from "../journal/address.ts";
import { closedFailure } from "../log.ts";
import type { PostgresAddress } from "./address.ts";
import { failureOf, NoAnswer } from "./failures.ts";

/** Shorter than the lease: whoever renews the lead tries another place while there is time. */
const CONNECT_MS = 2000;
/** For what is asked of a new connection before it is used. */
const FIRST_ANSWER_MS = 2000;
const KEEP_ALIVE_MS = 10_000;

export type Query = <Row extends QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

export type Lane = {
  readonly query: Query;
  /** Answers in the sequence of the questions, in one transaction. */
  together<Answer>(work: (query: Query) => Promise<Answer>): Promise<Answer>;
  /** Breaks the connection; the next question makes another. */
  drop(): void;
  close(): void;
};

/** A connection that is open, and how to break it at once. */
export type Connection = { readonly client: Client; destroy(): void };

/** The first place that takes writes; of one place only, whatever it is. */
export async function connect(
  address: PostgresAddress,
  places: readonly HostAndPort[],
  clock: Clock,
): Promise<Connection> {
  let last: unknown;
  for (const place of places) {
    try {
      const connection = await connectTo(address, place);
      if (places.length === 1 || (await takesWrites(connection, clock))) return connection;
      connection.destroy();
      last = new Error(`${place.host}:${place.port} is a standby`);
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

/** The first answer on a connection; one that is not there in time breaks it. */
export async function firstAnswer<Row extends QueryResultRow>(
  { client, destroy }: Connection,
  text: string,
  clock: Clock,
): Promise<Row[]> {
  const late = (): NoAnswer => new NoAnswer(`it did not answer within ${FIRST_ANSWER_MS} ms`);
  try {
    return (await answerWithin(clock, FIRST_ANSWER_MS, client.query<Row>(text), late)).rows;
  } catch (error) {
    destroy();
    throw error;
  }
}

async function connectTo(address: PostgresAddress, { host, port }: HostAndPort): Promise<Connection> {
  const { default: pg } = await import("pg");
  const { user, password, database, ssl } = address;
  const socket = new Socket();
  const client = new pg.Client({
    host,
    port,
    user,
    password,
    database,
    ssl,
    application_name: "drover",
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: CONNECT_MS,
    stream: () => socket,
  });
  const destroy = (): void => {
    socket.destroy();
  };
  // Whoever asked hears of it; an idle one is made anew with the next question.
  client.on("error", destroy);
  try {
    await client.connect();
  } catch (error) {
    destroy();
    throw error;
  }
  return { client, destroy };
}

async function takesWrites(connection: Connection, clock: Clock): Promise<boolean> {
  const [row] = await firstAnswer<{ standby: boolean }>(connection, "SELECT pg_is_in_recovery() AS standby", clock);
  return row?.standby === false;
}

type LaneInput = { readonly address: PostgresAddress; readonly clock: Clock; readonly answerMs: number };

export function createLane({ address, clock, answerMs }: LaneInput): Lane {
  let connection: Promise<Connection> | null = null;
  let turn: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  function drop(): void {
    const dropped = connection;
    connection = null;
    dropped?.then(({ destroy }) => destroy()).catch(() => {});
  }
  function connected(): Promise<Connection> {
    if (connection !== null) return connection;
    const own = connect(address, address.places, clock);
    const forget = (): void => {
      if (connection === own) connection = null;
    };
    own.then(({ client }) => client.on("end", forget).on("error", forget)).catch(forget);
    connection = own;
    return own;
  }
  function inTurn<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const answer = turn.then(async () => {
      if (isClosed) throw closedFailure();
      try {
        return await work();
      } catch (error) {
        if (!isAnswer(error)) drop();
        throw isClosed ? closedFailure() : failureOf(error, address);
      }
    });
    turn = answer.catch(() => {}); // Its own caller hears of a failure; the next in line goes on.
    return answer;
  }
  const ask: Query = async <Row extends QueryResultRow>(text: string, values: readonly unknown[] = []) => {
    const { client } = await connected();
    const late = (): NoAnswer => new NoAnswer(`it did not answer within ${answerMs} ms`);
    const { rows } = await answerWithin(clock, answerMs, client.query<Row>({ text, values: [...values] }), late);
    return rows;
  };
  return {
    query: (text, values) => inTurn(() => ask(text, values)),
    together: (work) =>
      inTurn(async () => {
        await ask("BEGIN");
        try {
          const answer = await work(ask);
          await ask("COMMIT");
          return answer;
        } catch (error) {
          drop(); // What was begun ends with its connection.
          throw error;
        }
      }),
    drop,
    close: () => {
      isClosed = true;
      drop();
    },
  };
}

/** Whether the server itself said so, and the connection is as good as before. */
const isAnswer = (error: unknown): boolean =>
  error instanceof Error && "severity" in error && error.severity === "ERROR";
