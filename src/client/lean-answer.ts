/**
 * An answer of HTTP/1.1 as its bytes come in: a head, and a body that has a length, comes in chunks, or lasts until the
 * connection ends. The body is kept as it came and made a text once. An answer that breaks the rules is refused. If
 * bytes follow its end, it still counts, but its connection is closed. A body may be as long as its server likes, as
 * with node:http: the program chose the server, and the time of the call ends it.
 */
import type { Fetched, FetchedHeaders } from "./fetch.ts";

/** Of all that is neither the body nor the size of a chunk; node:http reads a quarter of it. */
const HEAD_BYTES_MAX = 64 * 1024;
/** The size of a chunk, with what may stand behind it. */
const LINE_BYTES_MAX = 8 * 1024;
/** Sooner than most servers close what is idle. */
const IDLE_MS = 4000;
const KEPT_SECONDS = /\btimeout\s*=\s*(\d{1,9})/i;
/** Of what a server says, in an error. */
const SHOWN_MAX = 40;
const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_END = Buffer.from("\r\n");
const NOTHING = Buffer.alloc(0);
const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?:[ \r]|$)/;
/** What it begins with. Who says something else, and waits for a word of its own protocol, would say no more. */
const FIRST = "HTTP/1.";
const LENGTH = /^\d{1,15}$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/;
const CHUNK = /^([0-9a-f]{1,12})\s*(?:;|$)/i;

/** What is read next. */
type Reading = "head" | "sized" | "chunk-size" | "chunk" | "chunk-end" | "trailers" | "until-end" | "nothing";

export class LeanAnswer {
  /** For so long its connection can carry another, while that has nothing to do. */
  keptMs = 0;
  private status = 0;
  private headers: FetchedHeaders = NO_HEADERS;
  private reading: Reading = "head";
  /** What has come and is not read yet: less than a head, or a line. */
  private rest: Buffer = NOTHING;
  /** What was read of heads, and of the lines behind the last chunk. */
  private headBytes = 0;
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
    if (this.reading === "until-end") this.left = bytes.length + 1;
    if (bytes.length < this.left) {
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
    const size = at < 0 ? bytes.length : at + end.length;
    const isCounted = isHead || this.reading === "trailers";
    if (isCounted && this.headBytes + size > HEAD_BYTES_MAX) throw broken(`its head is over ${HEAD_BYTES_MAX} bytes`);
    if (!isCounted && size > LINE_BYTES_MAX) throw broken(`the size of a chunk is over ${LINE_BYTES_MAX} bytes long`);
    if (at < 0) {
      if (isHead && !bytes.toString("latin1", 0, FIRST.length).startsWith(FIRST.slice(0, bytes.length)))
        throw broken("it does not begin as one");
      return null;
    }
    if (isCounted) this.headBytes += size;
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
    this.headers = headersIn(text);
    this.keptMs = keptMsBy(this.headers, minor === "1");
    this.reading = this.beginBody();
  }

  private beginBody(): Reading {
    const coding = this.headers.get("transfer-encoding");
    const length = this.headers.get("content-length");
    if (this.status === 101) throw broken("it is of another protocol");
    if (this.status === 204 || this.status === 304) return "nothing";
    if (coding !== null) {
      if (length !== null) throw broken("it has a length and comes in chunks");
      if (coding.toLowerCase() !== "chunked") throw broken(`its transfer-encoding is ${coding.slice(0, SHOWN_MAX)}`);
      return "chunk-size";
    }
    if (length === null) {
      this.keptMs = 0;
      return "until-end";
    }
    if (!LENGTH.test(length)) throw broken(`its length is ${length.slice(0, SHOWN_MAX)}`);
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

const NO_HEADERS: FetchedHeaders = { get: () => null };

function headersIn(head: string): FetchedHeaders {
  const values = new Map<string, string>();
  for (const line of head.split("\r\n").slice(1)) {
    const [, name, value = ""] = FIELD.exec(line) ?? [];
    if (name === undefined) throw broken("a line of its head is no header");
    const key = name.toLowerCase();
    const before = values.get(key);
    values.set(key, before === undefined ? value.trim() : `${before}, ${value.trim()}`);
  }
  return { get: (name) => values.get(name.toLowerCase()) ?? null };
}

const broken = (how: string): Error => new Error(`the answer is not HTTP: ${how}`);
