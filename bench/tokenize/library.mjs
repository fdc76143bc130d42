// SPDX-License-Identifier: Apache-2.0
// Hugging Face's own tokenizers, measured as measure.cc measures Baton's.
//   node library.mjs load FOLDER
//   node library.mjs encode FOLDER MILLISECONDS INPUT.json…
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

// One thread, as Baton has one. The library reads these when it is first used.
process.env.TOKENIZERS_PARALLELISM = 'false';
process.env.RAYON_NUM_THREADS = '1';
const here = path.dirname(fileURLToPath(import.meta.url));
const require = createRequire(path.join(here, '../../tests/golden/package.json'));
const { Tokenizer } = require('tokenizers');

// A call from JavaScript costs some microseconds, which many short texts share.
const BATCH = 64;

function clocks() {
  const { user, system } = process.cpuUsage();
  return { cpu: (user + system) / 1e6, wall: performance.now() / 1e3 };
}

const [command, folder, ...rest] = process.argv.slice(2);
const file = path.join(folder, 'tokenizer.json');
if (command === 'load') {
  const before = clocks();
  Tokenizer.fromFile(file);
  const after = clocks();
  console.log(JSON.stringify({ cpu_s: after.cpu - before.cpu, wall_s: after.wall - before.wall }));
} else {
  const tokenizer = Tokenizer.fromFile(file);
  const options = { addSpecialTokens: false };
  for (const input of rest.slice(1)) {
    const texts = JSON.parse(fs.readFileSync(input, 'utf8'));
    const pass = async () => {
      const encodings = [];
      for (let i = 0; i < texts.length; i += BATCH) {
        const batch = texts.slice(i, i + BATCH);
        encodings.push(...(batch.length > 1 ? await tokenizer.encodeBatch(batch, options) : [await tokenizer.encode(batch[0], null, options)]));
      }
      return encodings;
    };
    const tokens = (await pass()).reduce((sum, encoding) => sum + encoding.getLength(), 0);
    const before = clocks();
    let after = before, passes = 0;
    while ((after.cpu - before.cpu) * 1e3 < Number(rest[0])) {
      await pass();
      ++passes;
      after = clocks();
    }
    console.log(JSON.stringify({ tokens, passes, cpu_s: after.cpu - before.cpu, wall_s: after.wall - before.wall }));
  }
}
