/** The content of a file, as a program gives it. */

/** A content that can be read more than once, such as a file; its hash and its size are known. */
export type FileSource = {
  /** The SHA-256 of the content, as 64 hex digits. */
  readonly hash: string;
  /** In bytes. */
  readonly size: number;
  /** The content, from its beginning each time. */
  bytes(): AsyncIterable<Uint8Array>;
};
/** What may be kept: text, bytes, or a source of bytes. */
export type FileContent = string | Uint8Array | FileSource;
