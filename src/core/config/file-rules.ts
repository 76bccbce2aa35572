/**
 * The limits of the files that tasks leave.
 */
import { type Reader, section, size, whole } from "../base/readers.ts";

/** The files that tasks leave. */
export type FileRules = {
  /** The largest file, in bytes. */
  readonly maxFile: number;
  /** All files of one task together, in bytes. */
  readonly maxTask: number;
  /** How many files one task may leave. */
  readonly maxFilesPerTask: number;
  /** All files that are kept, in bytes. */
  readonly maxTotal: number;
};

const MIB = 1024 * 1024;
/** What no file may exceed, and no number of files, however the config is set. */
export const FILE_BYTES_MAX: number = 1024 * MIB;
export const FILES_MAX = 1000;
export const ALL_FILES_BYTES_MAX: number = 1024 * 1024 * 1024 * MIB;

export const DEFAULT_FILE_RULES: FileRules = {
  maxFile: 64 * MIB,
  maxTask: 256 * MIB,
  maxFilesPerTask: 100,
  maxTotal: 10_240 * MIB,
};
export const readFileRules: Reader<FileRules> = section<FileRules>(
  {
    maxFile: size(1, FILE_BYTES_MAX),
    maxTask: size(1, ALL_FILES_BYTES_MAX),
    maxFilesPerTask: whole(1, FILES_MAX),
    maxTotal: size(1, ALL_FILES_BYTES_MAX),
  },
  DEFAULT_FILE_RULES,
);
