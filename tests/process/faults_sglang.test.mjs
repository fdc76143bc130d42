// SPDX-License-Identifier: Apache-2.0
// SGLang workers that fail in every way the simulator knows: see support/faults.mjs.
import { testFaults } from './support/faults.mjs';

testFaults('sglang');
