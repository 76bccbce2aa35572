/** Whether a server that listens there can be reached from its own machine only. */
export const isLoopback = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|\[::1\]|(0*:)+0*1)$/i.test(host);
