/**
 * Where a server listens, and why it cannot.
 */
import type { AddressInfo } from "node:net";
import type { Listener } from "../../http/index.ts";
import { StartRefusal } from "../access/tokens.ts";

/** Where a server is. */
export type Listening = { readonly url: string; readonly port: number; readonly address: string };

export async function listen(listener: Listener, host: string, port: number): Promise<Listening> {
  try {
    const bound = await listener.listen(host, port);
    return { url: urlOf(bound), port: bound.port, address: bound.address };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE")
      throw new StartRefusal("port_taken", `port ${port} of ${host} is taken; free it, or choose another server.port`);
    if (code === "EADDRNOTAVAIL")
      throw new StartRefusal("bad_settings", `${host} is not an address of this machine; see server.host`);
    throw error;
  }
}

/** Under which this machine reaches it. */
function urlOf({ address, family, port }: AddressInfo): string {
  const reached = address === "0.0.0.0" || address === "::" ? "127.0.0.1" : address;
  return `http://${family === "IPv6" && reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}
