// Who is on the other side: the imports of the component, or the host in memory of a test.

let current;

export function setHost(host) {
  current = host;
}

export function host() {
  if (current === undefined) throw new Error("there is no host: use millstream/testing, or build a component");
  return current;
}
