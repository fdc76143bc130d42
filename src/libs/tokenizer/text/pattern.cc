// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/pattern.h"

#include "libs/tokenizer/text/too_hard.h"
#include "libs/tokenizer/text/utf8.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace baton::tokenizer {
namespace {

// A match of an ordinary tokenizer pattern takes some dozen steps for each character.
constexpr std::uint32_t kMaxSteps = 10'000'000;
constexpr std::uint32_t kMaxHeapKib = 64 * 1024;
constexpr std::size_t kJitStackStart = 32 * 1024;
constexpr std::size_t kJitStackLimit = 1024 * 1024;

// Role. Memory for PCRE2 to run any pattern. Confinement. One for each thread.
class Workspace {
 public:
  static Workspace& of_this_thread() {
    static thread_local Workspace workspace;
    return workspace;
  }

  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() {
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
    pcre2_jit_stack_free(jit_stack_);
  }

  // The first match at or behind `start`.
  std::optional<Match> find(const pcre2_code* code, std::size_t start) {
    int found = run(code, start, 0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its state on the heap
      found = run(code, start, PCRE2_NO_JIT);
    }
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found < 0) throw TooHard("a regular expression of the tokenizer gives up on it");
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data_);
    return Match{offsets[0], offsets[1]};
  }

  std::string symbols;

 private:
  Workspace()
      : data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        jit_stack_(pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr)) {
    pcre2_set_match_limit(context_, kMaxSteps);
    pcre2_set_heap_limit(context_, kMaxHeapKib);
    pcre2_jit_stack_assign(context_, nullptr, jit_stack_);
  }

  int run(const pcre2_code* code, std::size_t start, std::uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(symbols.data()), symbols.size(), start,
                       options, data_, context_);
  }

  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* jit_stack_;
};

void append_class(std::string& out, std::span<const std::uint8_t> symbols) {
  if (symbols.empty()) {
    out += "[^\\x00-\\xff]";
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < symbols.size();) {
    std::size_t last = i;
    while (last + 1 < symbols.size() && symbols[last + 1] == symbols[last] + 1) {
      ++last;
    }
    out += fmt::format("\\x{:02x}-\\x{:02x}", symbols[i], symbols[last]);
    i = last + 1;
  }
  out += ']';
}

// Walks along a text as its symbols are counted: they are asked for in order.
class ByteOffsets {
 public:
  explicit ByteOffsets(std::string_view text) : text_(text) {}

  std::size_t of(std::size_t symbol) {
    for (; symbol_ < symbol; ++symbol_) {
      byte_ += utf8_size(text_[byte_]);
    }
    return byte_;
  }

 private:
  std::string_view text_;
  std::size_t symbol_ = 0;
  std::size_t byte_ = 0;
};

}  // namespace

void Pattern::FreeCode::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Result<std::unique_ptr<const Pattern>> Pattern::compile(std::string_view pattern, Dialect dialect) {
  auto parts = take_apart(pattern, dialect);
  if (!parts) {
    return fail(parts.error());
  }
  return compile(pattern, *parts);
}

Result<std::unique_ptr<const Pattern>> Pattern::compile(std::string_view pattern,
                                                        const PatternParts& parts) {
  auto alphabet = Alphabet::for_sets(parts.sets);
  if (!alphabet) {
    return fail(ErrorCode::InvalidFile,
                fmt::format("The regular expression {} tells more than 256 kinds of characters "
                            "apart, which Baton does not support.",
                            pattern));
  }
  std::string source;
  for (const PatternParts::Part& part : parts.parts) {
    if (part.set == PatternParts::kNoSet) {
      source += part.syntax;
    } else {
      append_class(source, alphabet->symbols_of(part.set));
    }
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                          PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NO_AUTO_CAPTURE, &error,
                          &offset, nullptr));
  if (!code) {
    std::array<char, 256> message{};
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message.data()), message.size());
    return fail(ErrorCode::InvalidFile, fmt::format("The regular expression {} cannot be used: {}.",
                                                    pattern, message.data()));
  }
  // Without a JIT on this machine the interpreter runs the same code.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return std::unique_ptr<const Pattern>(new Pattern(std::move(*alphabet), std::move(code)));
}

void Pattern::find_all(std::string_view text, std::vector<Match>& matches) const {
  Workspace& workspace = Workspace::of_this_thread();
  alphabet_.write(text, workspace.symbols);
  ByteOffsets bytes(text);
  std::optional<std::size_t> last_end;
  std::size_t start = 0;
  while (start <= workspace.symbols.size()) {
    const auto found = workspace.find(code_.get(), start);
    if (!found) {
      return;
    }
    // An empty match right behind another one is passed over.
    if (found->begin == found->end && last_end == found->end) {
      ++start;
      continue;
    }
    const std::size_t begin = bytes.of(found->begin);
    matches.push_back({begin, bytes.of(found->end)});
    last_end = found->end;
    start = found->end;
  }
}

}  // namespace baton::tokenizer
