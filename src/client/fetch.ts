/**
 * What carries the requests of a client: a `fetch`, as far as it is used.
 */

/** What the client needs of a `fetch`; the global one has all of it. */
export type Fetch = (url: string, request: FetchRequest) => Promise<Fetched>;
/** What `fetch` is given. */
export type FetchRequest = {
  /** The method of HTTP. */
  readonly method?: string;
  /** The headers of the request. */
  readonly headers: Record<string, string>;
  /** Redirects are not followed. */
  readonly redirect: "manual";
  /** Gives the request up. */
  readonly signal: AbortSignal;
  /** The body: JSON, or the content of a file. */
  readonly body?: string | AsyncIterable<Uint8Array>;
  /** The body is sent before the answer is read. */
  readonly duplex?: "half";
  /** The answer is read by `text()`, never as a stream. A `fetch` may ignore it. */
  readonly isWhole?: true;
};
/** What `fetch` answers, as far as the client uses it. */
export type Fetched = {
  /** The status of HTTP. */
  readonly status: number;
  /** The headers of the answer. */
  readonly headers: FetchedHeaders;
  /** The body as it comes in. */
  readonly body: AsyncIterable<Uint8Array> | null;
  /** The whole body as text. */
  text(): Promise<string>;
  /** Ends its connection, which brings the answers to other requests. */
  close?(): void;
};
/** The headers of an answer. */
export type FetchedHeaders = {
  /** The value of a header; null if it is not there. */
  get(name: string): string | null;
};
