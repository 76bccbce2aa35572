/**
 * Until when the lease holds, for all threads to read: the connection writes it, the handlers look before they begin.
 *
 * A lease is a matter of spans, not of dates: this is time that has elapsed, with one beginning for all threads.
 */
export type LeaseCell = { readonly shared: SharedArrayBuffer; read(): number; write(leaseEnd: number): void };

export function createLeaseCell(shared: SharedArrayBuffer = new SharedArrayBuffer(8)): LeaseCell {
  const cell = new BigInt64Array(shared);
  return {
    shared,
    read: () => Number(Atomics.load(cell, 0)),
    write: (leaseEnd) => void Atomics.store(cell, 0, BigInt(Math.max(0, Math.floor(leaseEnd)))),
  };
}
