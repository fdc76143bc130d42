// SPDX-License-Identifier: Apache-2.0
// Certificates for servers on this machine.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * A certificate that is its own authority, for a server and for a client. It has no common name: with users switched
 * on, etcd's gateway turns a client's certificate with one away.
 */
export async function makeCertificate(certificate, key, { algorithm = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'] } = {}) {
  await promisify(execFile)('openssl', [
    'req', '-x509', '-newkey', ...algorithm, '-nodes', '-days', '1',
    '-subj', '/O=baton', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key, '-out', certificate,
  ]);
}
