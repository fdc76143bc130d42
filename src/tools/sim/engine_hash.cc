// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/engine_hash.h"

#include "tools/sim/pickle_writer.h"

#include <openssl/evp.h>

#include <functional>
#include <random>
#include <utility>

namespace baton::sim {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::string_view kSglangSaltMark{"sglang-cache-salt-v1\0", 21};
constexpr std::string_view kSglangAdapterMark = "adapter\n";

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::uint64_t read_big_endian(Bytes bytes) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes.first(8)) value = (value << 8U) | byte;
  return value;
}

// Role. Writes one object in CBOR's canonical form.
// Confinement, Lifetime. Inside one function.
class CborWriter {
 public:
  explicit CborWriter(std::size_t bytes) { out_.reserve(bytes); }

  void none() { out_.push_back(0xF6); }
  void integer(std::int64_t value) {
    const bool negative = value < 0;
    head(negative ? 1 : 0, static_cast<std::uint64_t>(negative ? -(value + 1) : value));
  }
  void bytes(Bytes value) {
    head(2, value.size());
    out_.insert(out_.end(), value.begin(), value.end());
  }
  void text(std::string_view value) {
    head(3, value.size());
    out_.insert(out_.end(), value.begin(), value.end());
  }
  void open_tuple(std::size_t size) { head(4, size); }
  void close_tuple(std::size_t /*size*/) {}
  std::vector<std::uint8_t> finish() && { return std::move(out_); }

 private:
  // The shortest form of a type with a length or value.
  void head(std::uint8_t major, std::uint64_t value) {
    const auto type = static_cast<std::uint8_t>(major << 5U);
    if (value < 24) {
      out_.push_back(static_cast<std::uint8_t>(type | value));
      return;
    }
    const unsigned exponent = value <= 0xFF ? 0 : value <= 0xFFFF ? 1 : value <= 0xFFFFFFFF ? 2 : 3;
    out_.push_back(static_cast<std::uint8_t>(type | (24 + exponent)));
    for (unsigned shift = 8U << exponent; shift > 0; shift -= 8) {
      out_.push_back(static_cast<std::uint8_t>(value >> (shift - 8)));
    }
  }

  std::vector<std::uint8_t> out_;
};

std::uint64_t mix32(std::uint32_t value, std::uint64_t seed) {
  for (int round = 0; round < 2; ++round) value = ((value >> 16U) ^ value) * 0x45D9F3BU;
  value = (value >> 16U) ^ value;
  value += 0x9E3779B9U;
  return seed ^ (value + (seed << 6U) + (seed >> 2U));
}

std::uint64_t mix64(std::uint64_t value, std::uint64_t seed) {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  value ^= value >> 31U;
  return seed ^ (value + 0x9E3779B9U + (seed << 6U) + (seed >> 2U));
}

HashRule rule_of(const Options& options) {
  if (!options.tells_of_blocks()) return HashRule::TrtllmV1;
  switch (options.engine) {
    case model::Engine::Vllm:
      return options.kv.hash_pickle ? HashRule::VllmPickle : HashRule::VllmCbor;
    case model::Engine::Sglang:
      return HashRule::Sglang;
    case model::Engine::Trtllm:
      break;
  }
  return HashRule::TrtllmV1;
}

}  // namespace

std::uint64_t hash_number(HashRule rule, const BlockHash& hash) {
  return read_big_endian(is_vllm(rule) ? Bytes(hash).last(8) : Bytes(hash).first(8));
}

void BlockHasher::FreeContext::operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

BlockHasher::BlockHasher(HashRule rule) : rule_(rule), context_(EVP_MD_CTX_new()) {}
BlockHasher::~BlockHasher() = default;
BlockHasher::BlockHasher(BlockHasher&&) noexcept = default;
BlockHasher& BlockHasher::operator=(BlockHasher&&) noexcept = default;

BlockHasher BlockHasher::of(const Options& options) {
  BlockHasher hasher(rule_of(options));
  if (is_vllm(hasher.rule_)) {
    if (options.kv.hash_seed.empty()) {
      std::random_device random;
      for (std::uint8_t& byte : hasher.none_) byte = static_cast<std::uint8_t>(random());
    } else {
      hasher.seed(options.kv.hash_seed);
    }
    if (options.release() < model::Version{0, 12, 0}) hasher.name_adapters_by_number();
  }
  if (hasher.rule_ == HashRule::Sglang && options.release() < model::Version{0, 5, 18}) {
    hasher.leave_salt_out();
  }
  if (hasher.rule_ == HashRule::Sglang && options.release() >= model::Version{0, 5, 23})
    hasher.tell_adapters_apart();
  return hasher;
}

void BlockHasher::seed(std::string_view text) {
  const auto preimage = [text](auto writer) {
    writer.text(text);
    return std::move(writer).finish();
  };
  none_ = sha256({rule_ == HashRule::VllmPickle ? preimage(PickleWriter())
                                                : preimage(CborWriter(8 + text.size()))});
}

BlockHash BlockHasher::next(const std::optional<BlockHash>& parent, std::span<const TokenId> tokens,
                            const CacheScope& scope, std::span<const ItemKey> items) const {
  switch (rule_) {
    case HashRule::VllmCbor:
    case HashRule::VllmPickle:
      return next_vllm(parent, tokens, scope, items);
    case HashRule::Sglang:
      return next_sglang(parent, tokens, scope);
    case HashRule::TrtllmV1:
      break;
  }
  return next_trtllm(parent, tokens, scope);
}

std::uint64_t BlockHasher::key(const BlockHash& hash, const CacheScope& scope) const {
  std::uint64_t key = number(hash);
  if (rule_ != HashRule::Sglang) return key;
  const std::hash<std::string> hash_text;
  if (!scope.lora.empty()) key = mix64(hash_text(scope.lora), key);
  if (!scope.key.empty()) key = mix64(hash_text(scope.key), key + 2);
  if (!salt_in_hash_ && !scope.salt.empty()) key = mix64(hash_text(scope.salt), key + 1);
  return key;
}

BlockHash BlockHasher::sha256(std::initializer_list<Bytes> parts) const {
  BlockHash digest{};
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  for (const Bytes part : parts) EVP_DigestUpdate(context_.get(), part.data(), part.size());
  EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
  return digest;
}

template <class Writer>
void BlockHasher::write_vllm(Writer& out, const std::optional<BlockHash>& parent,
                             std::span<const TokenId> tokens, const CacheScope& scope,
                             std::span<const ItemKey> items) const {
  out.open_tuple(3);
  out.bytes(parent ? *parent : none_);
  out.open_tuple(tokens.size());
  for (const TokenId token : tokens) out.integer(token);
  out.close_tuple(tokens.size());
  const bool salted = !parent && !scope.salt.empty();
  const std::size_t keys =
      items.size() + static_cast<unsigned>(!scope.lora.empty()) + static_cast<unsigned>(salted);
  if (keys == 0) {
    out.none();
  } else {
    out.open_tuple(keys);
    if (!scope.lora.empty() && lora_by_number_) {
      out.integer(scope.lora_id);
    } else if (!scope.lora.empty()) {
      out.text(scope.lora);
    }
    for (const ItemKey& item : items) {
      out.open_tuple(2);
      out.text(item.id);
      out.integer(item.offset);
      out.close_tuple(2);
    }
    if (salted) out.text(scope.salt);
    out.close_tuple(keys);
  }
  out.close_tuple(3);
}

BlockHash BlockHasher::next_vllm(const std::optional<BlockHash>& parent,
                                 std::span<const TokenId> tokens, const CacheScope& scope,
                                 std::span<const ItemKey> items) const {
  const auto preimage = [&](auto writer) {
    write_vllm(writer, parent, tokens, scope, items);
    return std::move(writer).finish();
  };
  return sha256({rule_ == HashRule::VllmPickle ? preimage(PickleWriter())
                                               : preimage(CborWriter(64 + tokens.size() * 5))});
}

BlockHash BlockHasher::next_sglang(const std::optional<BlockHash>& parent,
                                   std::span<const TokenId> tokens, const CacheScope& scope) const {
  std::vector<std::uint8_t> content;
  content.reserve(tokens.size() * 8);
  const auto add = [&content](TokenId token) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      content.push_back(static_cast<std::uint8_t>(token >> shift));
    }
  };
  for (std::size_t i = 0; i + (pairs_ ? 1 : 0) < tokens.size(); ++i) {
    add(tokens[i]);
    if (pairs_) add(tokens[i + 1]);
  }
  if (parent) return sha256({*parent, content});
  if (adapter_in_hash_ && !scope.lora.empty())
    return sha256({bytes_of(kSglangAdapterMark), bytes_of(scope.lora), bytes_of("\n"),
                   bytes_of(scope.salt), content});
  if (scope.salt.empty() || !salt_in_hash_) return sha256({content});
  const BlockHash root = sha256({bytes_of(kSglangSaltMark), bytes_of(scope.salt)});
  return sha256({root, content});
}

BlockHash BlockHasher::next_trtllm(const std::optional<BlockHash>& parent,
                                   std::span<const TokenId> tokens, const CacheScope& scope) const {
  std::uint64_t chain =
      tokens.size() ^ ((parent ? read_big_endian(*parent) : 0) * 0xBF58476D1CE4E5B9U);
  if (!parent && !scope.salt.empty()) {
    const BlockHash digest = sha256({bytes_of(scope.salt)});
    std::uint64_t salt_id = 0;
    for (unsigned i = 0; i < 8; ++i) salt_id |= std::uint64_t{digest[i]} << (8 * i);
    chain = mix64(salt_id, chain);
  }
  for (const TokenId token : tokens) chain = mix32(token, chain);
  if (scope.lora_id != 0) chain = mix64(scope.lora_id, chain);
  BlockHash hash{};
  for (unsigned i = 0; i < 8; ++i) hash[i] = static_cast<std::uint8_t>(chain >> (56 - 8 * i));
  return hash;
}

}  // namespace baton::sim
