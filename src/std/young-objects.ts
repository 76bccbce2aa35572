/**
 * What a request leaves behind is collected young, in a process that serves many at once.
 *
 * V8 watches which objects survive their first collection, and makes those of a place where nearly all do among the old
 * ones from then on. A server that has just started has a small room for the young: with a few hundred requests that
 * wait for the disk, nearly all of what belongs to them survives, and is made old for good. What is old is collected
 * rarely, and keeps alive whatever it points to: the next collections carry every request along, headers and all, and
 * took a fifth of the time of the server's main thread. For a program of its own this is a flag; a library must not set
 * it for its host.
 */
import { setFlagsFromString } from "node:v8";

export function collectYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
