// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/engine_hash.h"

#include <openssl/evp.h>

#include <functional>
#include <random>

namespace baton::sim {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::string_view kSglangSaltMark{"sglang-cache-salt-v1\0", 21};

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::uint64_t read_big_endian(Bytes bytes) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes.first(8)) value = (value << 8U) | byte;
  return value;
}

// CBOR's shortest form of a type with a length or value.
void add_cbor_head(std::vector<std::uint8_t>& out, std::uint8_t major, std::uint64_t value) {
  const auto type = static_cast<std::uint8_t>(major << 5U);
  if (value < 24) {
    out.push_back(static_cast<std::uint8_t>(type | value));
    return;
  }
  const unsigned exponent = value <= 0xFF ? 0 : value <= 0xFFFF ? 1 : value <= 0xFFFFFFFF ? 2 : 3;
  out.push_back(static_cast<std::uint8_t>(type | (24 + exponent)));
  for (unsigned shift = 8U << exponent; shift > 0; shift -= 8) {
    out.push_back(static_cast<std::uint8_t>(value >> (shift - 8)));
  }
}

void add_cbor_text(std::vector<std::uint8_t>& out, std::string_view text) {
  add_cbor_head(out, 3, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

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
      return HashRule::VllmCbor;
    case model::Engine::Sglang:
      return HashRule::Sglang;
    case model::Engine::Trtllm:
      break;
  }
  return HashRule::TrtllmV1;
}

}  // namespace

std::uint64_t hash_number(HashRule rule, const BlockHash& hash) {
  return read_big_endian(rule == HashRule::VllmCbor ? Bytes(hash).last(8) : Bytes(hash).first(8));
}

void BlockHasher::FreeContext::operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

BlockHasher::BlockHasher(HashRule rule) : rule_(rule), context_(EVP_MD_CTX_new()) {}
BlockHasher::~BlockHasher() = default;
BlockHasher::BlockHasher(BlockHasher&&) noexcept = default;
BlockHasher& BlockHasher::operator=(BlockHasher&&) noexcept = default;

BlockHasher BlockHasher::of(const Options& options) {
  BlockHasher hasher(rule_of(options));
  if (hasher.rule_ == HashRule::VllmCbor) {
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
  return hasher;
}

void BlockHasher::seed(std::string_view text) {
  std::vector<std::uint8_t> preimage;
  add_cbor_text(preimage, text);
  none_ = sha256({preimage});
}

BlockHash BlockHasher::next(const std::optional<BlockHash>& parent, std::span<const TokenId> tokens,
                            const CacheScope& scope) const {
  switch (rule_) {
    case HashRule::VllmCbor:
      return next_vllm(parent, tokens, scope);
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

BlockHash BlockHasher::next_vllm(const std::optional<BlockHash>& parent,
                                 std::span<const TokenId> tokens, const CacheScope& scope) const {
  const BlockHash& before = parent ? *parent : none_;
  std::vector<std::uint8_t> preimage;
  preimage.reserve(64 + tokens.size() * 5);
  add_cbor_head(preimage, 4, 3);
  add_cbor_head(preimage, 2, before.size());
  preimage.insert(preimage.end(), before.begin(), before.end());
  add_cbor_head(preimage, 4, tokens.size());
  for (const TokenId token : tokens) add_cbor_head(preimage, 0, token);
  const bool salted = !parent && !scope.salt.empty();
  const auto keys = static_cast<unsigned>(!scope.lora.empty()) + static_cast<unsigned>(salted);
  if (keys == 0) {
    preimage.push_back(0xF6);
  } else {
    add_cbor_head(preimage, 4, keys);
    if (!scope.lora.empty() && lora_by_number_) {
      add_cbor_head(preimage, 0, scope.lora_id);
    } else if (!scope.lora.empty()) {
      add_cbor_text(preimage, scope.lora);
    }
    if (salted) add_cbor_text(preimage, scope.salt);
  }
  return sha256({preimage});
}

BlockHash BlockHasher::next_sglang(const std::optional<BlockHash>& parent,
                                   std::span<const TokenId> tokens, const CacheScope& scope) const {
  std::vector<std::uint8_t> content;
  content.reserve(tokens.size() * 4);
  for (const TokenId token : tokens) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      content.push_back(static_cast<std::uint8_t>(token >> shift));
    }
  }
  if (parent) return sha256({*parent, content});
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
