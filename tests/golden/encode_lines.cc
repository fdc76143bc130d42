// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors

// Baton's tokenizer for the golden tests: many requests in one run.
//   encode_lines FOLDER <requests >answers
// A request is a letter, the length of what follows (four bytes, little endian), and a text (e: encode,
// s: with special tokens, c: with a cache) or ids of four bytes each (d: decode, k: skipping special
// tokens). An answer is a byte (0: good, 1: refused), a length, and ids, a text, or a message.

#include "libs/tokenizer/segment_cache.h"
#include "libs/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {
namespace {

// So small that the oldest have to go while the tests run.
constexpr std::size_t kCacheBytes = 256UZ << 10;

bool read_exactly(void* to, std::size_t size) { return std::fread(to, 1, size, stdin) == size; }

void write_answer(bool good, const void* data, std::size_t size) {
  const auto length = static_cast<std::uint32_t>(size);
  std::fputc(good ? 0 : 1, stdout);
  std::fwrite(&length, sizeof length, 1, stdout);
  if (size > 0) std::fwrite(data, 1, size, stdout);
}

void encode(const Tokenizer& tokenizer, std::string_view text, const Encoding& encoding) {
  const auto ids = tokenizer.encode(text, encoding);
  if (ids) {
    write_answer(true, ids->data(), ids->size() * sizeof(TokenId));
  } else {
    write_answer(false, ids.error().message().data(), ids.error().message().size());
  }
}

void decode(const Tokenizer& tokenizer, std::string_view bytes, SkipSpecial skip) {
  TokenIds ids(bytes.size() / sizeof(TokenId));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(TokenId));
  const std::string text = tokenizer.decode(ids, skip);
  write_answer(true, text.data(), text.size());
}

bool answer(const Tokenizer& tokenizer, SegmentCache& cache, char kind, std::string_view subject) {
  switch (kind) {
    case 'e':
      encode(tokenizer, subject, {.add_special = AddSpecial::No});
      return true;
    case 's':
      encode(tokenizer, subject, {.add_special = AddSpecial::Yes});
      return true;
    case 'c':
      encode(tokenizer, subject, {.add_special = AddSpecial::No, .cache = &cache});
      return true;
    case 'd':
      decode(tokenizer, subject, SkipSpecial::No);
      return true;
    case 'k':
      decode(tokenizer, subject, SkipSpecial::Yes);
      return true;
    default:
      return false;
  }
}

int serve(const char* folder) {
  // The libraries of the golden tests know tokenizer.json alone, as transformers 4 does.
  const auto tokenizer = Tokenizer::load(folder, Transformers::V4);
  if (!tokenizer) {
    fmt::print(stderr, "{}\n", tokenizer.error().message());
    return 3;
  }
  SegmentCache cache(kCacheBytes);
  char kind = 0;
  std::string subject;
  while (read_exactly(&kind, 1)) {
    std::uint32_t length = 0;
    if (!read_exactly(&length, sizeof length)) return 2;
    subject.resize(length);
    if (!read_exactly(subject.data(), length)) return 2;
    if (!answer(**tokenizer, cache, kind, subject)) return 2;
  }
  return 0;
}

}  // namespace
}  // namespace baton::tokenizer

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: encode_lines FOLDER <requests >answers\n");
    return 2;
  }
  return baton::tokenizer::serve(argv[1]);
}
