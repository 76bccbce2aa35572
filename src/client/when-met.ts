/** What waits alone is a call as any other. What lets several share a request is loaded when they first meet. */
export function whenMet<Shared>(load: () => Promise<Shared>) {
  let underWay = 0;
  let loading: Promise<Shared> | undefined;
  return async <Value>(alone: () => Promise<Value>, together: (shared: Shared) => Promise<Value>): Promise<Value> => {
    underWay++;
    try {
      if (underWay === 1 && loading === undefined) return await alone();
      loading ??= load();
      return await together(await loading);
    } finally {
      underWay--;
    }
  };
}
