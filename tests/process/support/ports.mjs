// SPDX-License-Identifier: Apache-2.0
// Ports that must be known before a server listens there.
import { readFileSync } from 'node:fs';
import net from 'node:net';

const [LOWEST, HIGHEST, ENOUGH] = [10_000, 65_535, 1_000];
// From these the kernel gives ports to processes that ask for any: one found free there may be taken a moment later.
const [first, last] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/).map(Number);
const others = [[LOWEST, first - 1], [last + 1, HIGHEST]].filter(([from, to]) => to - from >= ENOUGH);
const [from, to] = others[0] ?? [LOWEST, HIGHEST];
const given = new Set();

const isFree = (port) =>
  new Promise((resolve) => {
    const server = net.createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** A port without a listener, nor will unless told to. Never the same again. */
export async function freePort() {
  for (let tries = 0; tries < ENOUGH; ++tries) {
    const port = from + Math.floor(Math.random() * (to - from + 1));
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${from} to ${to} is free`);
}
