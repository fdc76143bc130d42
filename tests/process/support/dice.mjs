// SPDX-License-Identifier: Apache-2.0
// Chance that can be repeated.

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Mulberry32: the same numbers for the same seed on every machine. */
export class Dice {
  constructor(seed) {
    this.state = seed >>> 0;
  }

  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let z = this.state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 4294967296;
  }

  below(bound) {
    return Math.floor(this.next() * bound);
  }

  between(from, to) {
    return from + this.below(to - from + 1);
  }

  chance(share) {
    return this.next() < share;
  }

  of(list) {
    return list[this.below(list.length)];
  }
}
