/**
 * An answer of HTTP/1.1 as its bytes come in: a head, and a body that has a length, comes in chunks, or lasts until the
 * connection ends. What a client reads whole is kept as it came and made a text once. An answer that breaks the rules
 * is refused. One that goes on behind its end counts, and its connection is of no use any more.
 */
import type { Fetched, FetchedHeaders } from "./fetch.ts";

/** Four times as much as node:http reads. */
const HEAD_BYTES_MAX = 64 * 1024;
/** The size of a chunk with what may stand behind it, or a line of what follows the last. */
const LINE_BYTES_MAX = 8 * 1024;
/** Sooner than most servers close what is idle, and as soon as node:http. */
const IDLE_MS = 4000;
const KEPT_SECONDS = /\btimeout\s*=\s*(\d{1,9})/i;
const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_END = Buffer.from("\r\n");
const NOTHING = Buffer.alloc(0);
const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?:[ \r]|$)/;
const LENGTH = /^\d{1,15}$/;
const CHUNK = /^([0-9a-f]{1,12})\s*(?:;|$)/i;

/** What is read next. */
type Reading = "head" | "sized" | "chunk-size" | "chunk" | "chunk-end" | "trailers" | "until-end" | "nothing";

export class LeanAnswer {
  /** For so long its connection can carry another, while that has nothing to do. */
  keptMs = 0;
  private status = 0;
  private headers: LeanHeaders = NO_HEADERS;
  private reading: Reading = "head";
  /** What has come and is not read yet: less than a head, or a line. */
  private rest: Buffer = NOTHING;
  /** So much is missing of the body, or of a chunk. */
  private left = 0;
  private readonly parts: Buffer[] = [];

  /** Whether it is whole by this. */
  add(bytes: Buffer): boolean {
    let more = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    this.rest = NOTHING;
    while (more.length > 0 && this.reading !== "nothing") {
      const next = this.isInBody() ? this.readBody(more) : this.readLines(more);
      if (next === null) {
        this.rest = more;
        return false;
      }
      more = next;
    }
    if (this.reading !== "nothing") return false;
    if (more.length > 0) this.keptMs = 0;
    return true;
  }

  /** Whether the end of its connection is its end. */
  isWholeAtEnd(): boolean {
    return this.reading === "until-end";
  }

  /** Whether it refuses, and the end of its connection is its end. */
  isRefusalSoFar(): boolean {
    return this.isWholeAtEnd() && this.status >= 400;
  }

  fetched(): Fetched {
    const { status, headers, parts } = this;
    const [first = NOTHING] = parts;
    const text = (parts.length <= 1 ? first : Buffer.concat(parts)).toString("utf8");
    return { status, headers, body: null, text: () => Promise.resolve(text) };
  }

  private isInBody(): boolean {
    return this.reading === "sized" || this.reading === "chunk" || this.reading === "until-end";
  }

  /** What is behind it. */
  private readBody(bytes: Buffer): Buffer {
    if (this.reading === "until-end" || bytes.length < this.left) {
      this.parts.push(bytes);
      this.left -= bytes.length;
      return NOTHING;
    }
    const { left } = this;
    this.parts.push(left === bytes.length ? bytes : bytes.subarray(0, left));
    this.reading = this.reading === "sized" ? "nothing" : "chunk-end";
    return bytes.subarray(left);
  }

  /** What is behind it; null if it is not all there yet. */
  private readLines(bytes: Buffer): Buffer | null {
    const isHead = this.reading === "head";
    const end = isHead ? HEAD_END : LINE_END;
    const at = bytes.indexOf(end);
    if ((at < 0 ? bytes.length : at) > (isHead ? HEAD_BYTES_MAX : LINE_BYTES_MAX)) throw broken("a line is too long");
    if (at < 0) return null;
    const text = bytes.toString("latin1", 0, at);
    if (isHead) this.readHead(text);
    else this.readLine(text);
    return bytes.subarray(at + end.length);
  }

  private readHead(text: string): void {
    const [, minor, digits] = STATUS_LINE.exec(text) ?? [];
    if (digits === undefined) throw broken("it does not begin as one");
    const status = Number(digits);
    // There is more to come, and this says nothing that is of use here.
    if (status < 200 && status !== 101) return;
    this.status = status;
    this.headers = new LeanHeaders(text);
    this.keptMs = keptMsBy(this.headers, minor === "1");
    this.reading = this.beginBody();
  }

  private beginBody(): Reading {
    const coding = this.headers.get("transfer-encoding");
    const length = this.headers.get("content-length");
    if (this.status === 101) throw broken("it is of another protocol");
    if (this.status === 204 || this.status === 304) return "nothing";
    if (coding !== null) {
      if (coding.toLowerCase() !== "chunked" || length !== null) throw broken(`it comes as ${coding}`);
      return "chunk-size";
    }
    if (length === null) {
      this.keptMs = 0;
      return "until-end";
    }
    if (!LENGTH.test(length)) throw broken(`its length is ${length}`);
    this.left = Number(length);
    return this.left === 0 ? "nothing" : "sized";
  }

  private readLine(line: string): void {
    if (this.reading === "chunk-end") {
      if (line !== "") throw broken("a chunk is longer than it says");
      this.reading = "chunk-size";
    } else if (this.reading === "chunk-size") {
      const [, size] = CHUNK.exec(line) ?? [];
      if (size === undefined) throw broken("a chunk has no size");
      this.left = Number.parseInt(size, 16);
      this.reading = this.left === 0 ? "trailers" : "chunk";
    } else if (line === "") this.reading = "nothing";
  }
}

/** Some seconds, or a second less than the server says that it will keep the connection. */
function keptMsBy(headers: FetchedHeaders, isByDefault: boolean): number {
  const connection = headers.get("connection")?.toLowerCase() ?? "";
  if (isByDefault ? connection.includes("close") : !connection.includes("keep-alive")) return 0;
  const [, seconds] = KEPT_SECONDS.exec(headers.get("keep-alive") ?? "") ?? [];
  return seconds === undefined ? IDLE_MS : Math.max(0, Math.min(IDLE_MS, (Number(seconds) - 1) * 1000));
}

/** Read when the first of them is asked for. */
class LeanHeaders implements FetchedHeaders {
  private readonly text: string;
  private values: Map<string, string> | null = null;

  constructor(text: string) {
    this.text = text;
  }

  get(name: string): string | null {
    this.values ??= valuesIn(this.text);
    return this.values.get(name.toLowerCase()) ?? null;
  }
}
const NO_HEADERS = new LeanHeaders("");

function valuesIn(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split("\r\n").slice(1)) {
    const colon = line.indexOf(":");
    if (colon <= 0 || line[0] === " " || line[0] === "\t") throw broken("a line of its head is none");
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = values.get(name);
    values.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return values;
}

const broken = (how: string): Error =>
  Object.assign(new Error(`the answer is no HTTP: ${how}`), { code: "BAD_ANSWER" });
