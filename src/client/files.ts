/**
 * The contents of files, to the server and from it, as they are.
 *
 * A content is named by its hash, so to put it twice is to put it once, and what comes back is compared with what was
 * asked for: nothing on the way can change it unseen.
 */
import { createHash, hash as hashOf } from "node:crypto";
import { buffer } from "node:stream/consumers";
import type { FileContent, FileQuery, FileSource, PutFileQuery, StoredFile } from "../protocol/index.ts";
import { BYTES, ENDPOINTS } from "../protocol/wire/index.ts";
import { present } from "../std/plain-json.ts";
import { type CallOptions, checkCall } from "./call-options.ts";
import { ClientError } from "./client-error.ts";
import { answerOf, retried, send, type Wiring } from "./exchange.ts";
import type { Fetched } from "./fetch.ts";

/** Files of tasks, over HTTP. */
export type ClientFiles = {
  /** Puts the content of a file that an attempt leaves. It lists the file when it reports its end. */
  put(content: FileContent, options?: CallOptions & PutFileQuery): Promise<StoredFile>;
  /** The content of a file that a task left. */
  get(hash: string, options?: CallOptions & FileQuery): Promise<Uint8Array>;
  /** The same, chunk by chunk, each once it is there: that all of it is right is known when the last has come. */
  open(hash: string, options?: CallOptions & FileQuery): AsyncGenerator<Uint8Array>;
};

/** Without a byte of a file, there or back: a whole one takes as long as its line needs. */
const SILENCE_MS = 120_000;

/** Ends a try in which nothing moves for so long. */
type Silence = { readonly late: AbortSignal; begin(): void; end(): void };

function silenceOf(ms: number): Silence {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const end = (): void => clearTimeout(timer);
  return {
    late: controller.signal,
    begin() {
      end();
      timer = setTimeout(() => controller.abort(), ms).unref();
    },
    end,
  };
}

/** The chunks of a file that is sent: when the next is asked for, the one before is on its way. */
async function* sent(chunks: AsyncIterable<Uint8Array>, { begin }: Silence): AsyncGenerator<Uint8Array> {
  begin();
  for await (const chunk of chunks) {
    begin();
    yield chunk;
  }
  begin();
}

/** The chunks of a file that comes; while one of them is worked on no other is waited for. */
async function* heard(chunks: AsyncIterable<Uint8Array>, { begin, end }: Silence): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    end();
    yield chunk;
    begin();
  }
}

export async function put(
  wiring: Wiring,
  content: FileContent,
  options: CallOptions & PutFileQuery = {},
): Promise<StoredFile> {
  const { query, call } = split(options);
  const source = sourceOf(content);
  const headers = { "content-type": BYTES, "content-length": String(source.size) };
  const asked = { params: { hash: source.hash }, query };
  return retried(wiring, call, async () => {
    const silence = silenceOf(call.timeoutMs);
    const { late } = silence;
    const body = sent(source.bytes(), silence);
    silence.begin();
    try {
      return await send(wiring, ENDPOINTS.putFile, asked, call, { late, headers, body }, async (response) => {
        const { status, headers: answered } = response;
        const answer = { status, headers: answered, text: await response.text() };
        return answerOf(ENDPOINTS.putFile, answer) as StoredFile;
      });
    } finally {
      silence.end();
    }
  });
}

export async function get(wiring: Wiring, hash: string, options: CallOptions & FileQuery = {}): Promise<Uint8Array> {
  const { query, call } = split(options);
  return retried(wiring, call, () => buffer(once(wiring, hash, query, call)));
}

/** Tried until its first chunk is there: who has read a part cannot begin again. */
export async function* open(
  wiring: Wiring,
  hash: string,
  options: CallOptions & FileQuery = {},
): AsyncGenerator<Uint8Array> {
  const { query, call } = split(options);
  const { chunks, first } = await retried(wiring, call, async () => {
    const begun = once(wiring, hash, query, call);
    return { chunks: begun, first: await begun.next() };
  });
  try {
    if (first.done !== true) yield first.value;
    yield* chunks;
  } finally {
    await chunks.return(undefined);
  }
}

async function* once(wiring: Wiring, hash: string, query: FileQuery, call: FileCall): AsyncGenerator<Uint8Array> {
  const endpoint = ENDPOINTS.file;
  const digest = createHash("sha256");
  const silence = silenceOf(call.timeoutMs);
  const { late } = silence;
  silence.begin();
  try {
    const body = await send(wiring, endpoint, { params: { hash }, query }, call, { late }, async (response) => {
      if (response.status === 200) return response.body ?? none();
      throw await refusalIn(response);
    });
    for await (const chunk of heard(body, silence)) {
      digest.update(chunk);
      yield chunk;
    }
  } catch (error) {
    call.signal?.throwIfAborted();
    if (error instanceof ClientError) throw error;
    throw new ClientError("network", `the file ${hash} did not come whole`, { retryable: true, cause: error });
  } finally {
    silence.end();
  }
  if (digest.digest("hex") !== hash)
    throw new ClientError("bad_answer", `what came is not the file ${hash}`, { details: { hash } });
}

async function refusalIn(response: Fetched): Promise<unknown> {
  try {
    return answerOf(ENDPOINTS.file, {
      status: response.status,
      headers: response.headers,
      text: await response.text(),
    });
  } catch (error) {
    return error;
  }
}

async function* none(): AsyncGenerator<Uint8Array> {}
async function* one(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content;
}

function sourceOf(content: FileContent): FileSource {
  if (typeof content === "object" && !(content instanceof Uint8Array)) return content;
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return { hash: hashOf("sha256", bytes, "hex"), size: bytes.length, bytes: () => one(bytes) };
}

type FileCall = CallOptions & { readonly timeoutMs: number };

function split<Query extends PutFileQuery>(options: CallOptions & Query): { query: PutFileQuery; call: FileCall } {
  const { task, attempt, session, ...rest } = options;
  checkCall(rest);
  const { timeoutMs = SILENCE_MS, ...call } = rest;
  return { query: present({ task, attempt, session }), call: { ...call, timeoutMs } };
}
