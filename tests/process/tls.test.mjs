// SPDX-License-Identifier: Apache-2.0
// Clients over TLS: what they are served, by which certificate and with which ciphers.
import assert from 'node:assert/strict';
import { readFile, rename, writeFile } from 'node:fs/promises';

import { makeCertificate } from './support/certificate.mjs';
import { Fleet } from './support/fleet.mjs';
import { RawConnection, readAnswer, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const CHAT = '/v1/chat/completions';
const chat = (text) => ({ model: 'demo', messages: [{ role: 'user', content: text }], stream: true });

async function serving(s, algorithm) {
  const [certificate, key] = [s.file('certificate.pem'), s.file('key.pem')];
  await makeCertificate(certificate, key, algorithm);
  const { router } = await Fleet.start(s, { counts: { aggregated: 1 }, config: { tls: { certificate, key } } });
  return { router, certificate, key };
}

async function askOver(connection, text) {
  connection.write(wire('POST', CHAT, {}, JSON.stringify(chat(text))));
  const answer = readAnswer(await inTime('an answer over TLS', connection.response()));
  assert.equal(answer.text, expectedAnswer(chat(text)).choices[0].text);
  assert.ok(answer.done);
}

const opened = ({ address }, options) => RawConnection.open(address, { rejectUnauthorized: false, ...options });

/** The serial number of the certificate that a new connection is shown. */
async function shownBy(router) {
  const connection = await opened(router);
  const { serialNumber } = connection.socket.getPeerCertificate();
  connection.destroy();
  return serialNumber;
}

const logged = (router, event) => router.process.stderr.split(`"${event}"`).length - 1;

scenario('requests over TLS', async (s) => {
  const { router, certificate } = await serving(s);
  const connection = await RawConnection.open(router.address, { ca: await readFile(certificate), servername: 'localhost' });
  for (const text of ['first over TLS', 'second over TLS']) await askOver(connection, text);
  connection.destroy();
  const plain = (await RawConnection.open(router.address)).write(wire('GET', '/v1/models'));
  await inTime('plain text is turned away', plain.closed());
  plain.destroy();
});

scenario('a certificate is replaced', async (s) => {
  const { router, certificate, key } = await serving(s);
  const before = await shownBy(router);
  const open = await opened(router);
  await askOver(open, 'Before');

  await s.step('by files that take its place: new connections are shown it, open ones go on', async () => {
    const [certificate2, key2] = [s.file('next.pem'), s.file('next.key')];
    await makeCertificate(certificate2, key2);
    await rename(key2, key);
    await rename(certificate2, certificate);
    await until('the new certificate is shown', async () => (await shownBy(router)) !== before);
    await askOver(open, 'After');
  });
  await s.step('but not by one that cannot be used', async () => {
    const shown = await shownBy(router);
    await writeFile(certificate, 'no certificate');
    await until('that is said', () => logged(router, 'certificate_not_replaced') > 0);
    router.process.signal('SIGHUP');
    const said = logged(router, 'certificate_not_replaced');
    await until('and again when asked', () => logged(router, 'certificate_not_replaced') > said);
    assert.equal(await shownBy(router), shown);
    await askOver(open, 'Still there');
  });
  open.destroy();
});

scenario('ciphers that keep no secret for long are refused', async (s) => {
  const { router } = await serving(s, { algorithm: ['rsa:2048'] });
  const with12 = (ciphers) => opened(router, { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2', ciphers });
  for (const cipher of ['AES128-SHA', 'AES128-GCM-SHA256', 'ECDHE-RSA-AES128-SHA', 'ECDHE-RSA-AES256-SHA384']) {
    await assert.rejects(with12(cipher), /handshake failure/i, cipher);
  }
  const modern = await with12('ECDHE-RSA-AES128-GCM-SHA256');
  await askOver(modern, 'With forward secrecy');
  modern.destroy();
});
