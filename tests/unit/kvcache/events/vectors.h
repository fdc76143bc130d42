// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::test {

// Messages as engines send them, made by hand with no code of Baton's, and what is in them.

struct ExpectedKey {
  std::uint32_t block;
  bool item;  // of an image or the like, with its place; else a bare text
  std::string_view name;
};
struct ExpectedEvent {
  std::string_view type;  // Unknown: another one
  std::vector<std::uint64_t> hashes = {};
  std::optional<std::uint64_t> parent = {};
  std::vector<std::uint32_t> tokens = {};
  std::uint64_t block_size = 0;
  std::optional<std::uint64_t> lora_id = {};
  std::string_view medium = {};
  std::string_view lora_name = {};
  std::vector<ExpectedKey> keys = {};
  std::optional<std::uint64_t> group = {};
  std::string_view kind = {};
  std::optional<std::uint64_t> sliding_window = {};
  std::string_view locality = {};
  std::string_view ownership = {};
  std::string_view session_id = {};
  std::string_view cache_salt = {};
  bool bigram = false;
};
struct Vector {
  std::string_view name;
  std::string_view hex;
  bool ok = true;  // else it is to be refused
  double timestamp = 0;
  std::optional<std::uint32_t> rank = {};
  std::vector<ExpectedEvent> events = {};
};

inline std::string from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return bytes;
}

inline const std::vector<Vector>& vectors() {
  static const std::vector<Vector> kVectors = {
      {.name = "vllm-0.9-array-minimal",
       .hex = "93cb41da26cb301000009396ab426c6f636b53746f72656491cf0123456789abcdefc094017fcc80"
              "ccff04c092ac426c6f636b52656d6f76656491cf0123456789abcdef91b0416c6c426c6f636b7343"
              "6c656172656400",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x0123456789abcdef},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4},
                  {.type = "BlockRemoved", .hashes = {0x0123456789abcdef}},
                  {.type = "AllBlocksCleared"}}},
      {.name = "vllm-0.11-array-medium",
       .hex = "93cb41da26cb301000009297ab426c6f636b53746f72656492cf0123456789abcdefcffedcba9876"
              "543210c098017fcc80ccffcd0100cdffffce00010000ce0001f40004c0a347505593ac426c6f636b"
              "52656d6f76656491cffedcba9876543210a347505500",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x0123456789abcdef, 0xfedcba9876543210},
                   .tokens = {1, 127, 128, 255, 256, 65535, 65536, 128000},
                   .block_size = 4,
                   .medium = "GPU"},
                  {.type = "BlockRemoved", .hashes = {0xfedcba9876543210}, .medium = "GPU"}}},
      {.name = "vllm-0.14-array-lora",
       .hex = "93cb41da26cb301000009198ab426c6f636b53746f72656491cffedcba9876543210cf0123456789"
              "abcdef94cd0100cdffffce00010000ce0001f4000401a3475055ab73716c2d6164617074657201",
       .timestamp = 1755000000.25,
       .rank = 1,
       .events = {{.type = "BlockStored",
                   .hashes = {0xfedcba9876543210},
                   .parent = 0x0123456789abcdef,
                   .tokens = {256, 65535, 65536, 128000},
                   .block_size = 4,
                   .lora_id = 1,
                   .medium = "GPU",
                   .lora_name = "sql-adapter"}}},
      {.name = "vllm-0.19-array-extra-keys",
       .hex = "93cb41da26cb301000009199ab426c6f636b53746f72656492cf0123456789abcdefcffedcba9876"
              "543210c098017fcc80ccffcd0100cdffffce00010000ce0001f40004c0a3475055c09291a874656e"
              "616e742d379192d94061626162616261626162616261626162616261626162616261626162616261"
              "6261626162616261626162616261626162616261626162616261626162616261620200",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events =
           {{.type = "BlockStored",
             .hashes = {0x0123456789abcdef, 0xfedcba9876543210},
             .tokens = {1, 127, 128, 255, 256, 65535, 65536, 128000},
             .block_size = 4,
             .medium = "GPU",
             .keys = {{.block = 0, .item = false, .name = "tenant-7"},
                      {.block = 1,
                       .item = true,
                       .name =
                           "abababababababababababababababababababababababababababababababab"}}}}},
      {.name = "vllm-0.20-array-group",
       .hex = "93cb41da26cb30100000929aab426c6f636b53746f72656491cf0123456789abcdefc094017fcc80"
              "ccff04c0a3475055c0c00094ac426c6f636b52656d6f76656491cf0123456789abcdefa347505500"
              "00",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events =
           {{.type = "BlockStored",
             .hashes = {0x0123456789abcdef},
             .tokens = {1, 127, 128, 255},
             .block_size = 4,
             .medium = "GPU",
             .group = 0},
            {.type = "BlockRemoved", .hashes = {0x0123456789abcdef}, .medium = "GPU", .group = 0}}},
      {.name = "vllm-0.23-array-full-tail",
       .hex = "93cb41da26cb30100000929cab426c6f636b53746f72656491cf0123456789abcdefc094017fcc80"
              "ccff04c0a3475055c091c000ae66756c6c5f617474656e74696f6ec09cab426c6f636b53746f7265"
              "6491cffedcba9876543210c094017fcc80ccff04c0a3475055c091c001ae736c6964696e675f7769"
              "6e646f77cd040000",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x0123456789abcdef},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .medium = "GPU",
                   .group = 0,
                   .kind = "full_attention"},
                  {.type = "BlockStored",
                   .hashes = {0xfedcba9876543210},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .medium = "GPU",
                   .group = 1,
                   .kind = "sliding_window",
                   .sliding_window = 1024}}},
      {.name = "vllm-0.24-map-stored",
       .hex = "93cb41da26cb30100000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
              "657392cf0123456789abcdefcffedcba9876543210b1706172656e745f626c6f636b5f68617368c0"
              "a9746f6b656e5f69647398017fcc80ccffcd0100cdffffce00010000ce0001f400aa626c6f636b5f"
              "73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa657874"
              "72615f6b65797392c0c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e64"
              "ae66756c6c5f617474656e74696f6e00",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x0123456789abcdef, 0xfedcba9876543210},
                   .tokens = {1, 127, 128, 255, 256, 65535, 65536, 128000},
                   .block_size = 4,
                   .medium = "GPU",
                   .group = 0,
                   .kind = "full_attention"}}},
      {.name = "vllm-0.24-map-removed-cleared",
       .hex = "93cb41da26cb301000009284a474797065ac426c6f636b52656d6f766564ac626c6f636b5f686173"
              "68657391cffedcba9876543210a66d656469756da3475055a967726f75705f6964780081a4747970"
              "65b0416c6c426c6f636b73436c656172656400",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events =
           {{.type = "BlockRemoved", .hashes = {0xfedcba9876543210}, .medium = "GPU", .group = 0},
            {.type = "AllBlocksCleared"}}},
      {.name = "vllm-0.24-map-swa-fewer-hashes",
       .hex = "93cb41da26cb30100000918ca474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
              "657391cf8000000000000001b1706172656e745f626c6f636b5f68617368cf0123456789abcdefa9"
              "746f6b656e5f69647398017fcc80ccffcd0100cdffffce00010000ce0001f400aa626c6f636b5f73"
              "697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472"
              "615f6b65797391c0a967726f75705f69647801b26b765f63616368655f737065635f6b696e64ae73"
              "6c6964696e675f77696e646f77bc6b765f63616368655f737065635f736c6964696e675f77696e64"
              "6f77cc8000",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x8000000000000001},
                   .parent = 0x0123456789abcdef,
                   .tokens = {1, 127, 128, 255, 256, 65535, 65536, 128000},
                   .block_size = 4,
                   .medium = "GPU",
                   .group = 1,
                   .kind = "sliding_window",
                   .sliding_window = 128}}},
      {.name = "vllm-0.26-map-cpu-placeholder",
       .hex = "93cb41da26cb301000009389a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
              "657391cf0123456789abcdefb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964"
              "7390aa626c6f636b5f73697a6500a76c6f72615f6964c0a66d656469756da3435055a96c6f72615f"
              "6e616d65c0a967726f75705f696478008aa474797065ab426c6f636b53746f726564ac626c6f636b"
              "5f68617368657391cffedcba9876543210b1706172656e745f626c6f636b5f68617368c0a9746f6b"
              "656e5f69647390aa626c6f636b5f73697a6500a76c6f72615f6964c0a66d656469756da753544f52"
              "414745a96c6f72615f6e616d65c0a967726f75705f69647800a86c6f63616c697479a652454d4f54"
              "4585a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cf0123456789"
              "abcdefa66d656469756da3435055a967726f75705f69647800a86c6f63616c697479a54c4f43414c"
              "00",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events =
           {{.type = "BlockStored", .hashes = {0x0123456789abcdef}, .medium = "CPU", .group = 0},
            {.type = "BlockStored",
             .hashes = {0xfedcba9876543210},
             .medium = "STORAGE",
             .group = 0,
             .locality = "REMOTE"},
            {.type = "BlockRemoved",
             .hashes = {0x0123456789abcdef},
             .medium = "CPU",
             .group = 0,
             .locality = "LOCAL"}}},
      {.name = "vllm-bytes-hashes",
       .hex = "93cb41da26cb30100000928aa474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
              "657391c420000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb17061"
              "72656e745f626c6f636b5f68617368c4206465666768696a6b6c6d6e6f707172737475767778797a"
              "7b7c7d7e7f80818283a9746f6b656e5f69647394017fcc80ccffaa626c6f636b5f73697a6504a76c"
              "6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0a967726f75705f69647800"
              "b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e84a474797065"
              "ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391c4206465666768696a6b6c6d6e"
              "6f707172737475767778797a7b7c7d7e7f80818283a66d656469756da3475055a967726f75705f69"
              "64780000",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x18191a1b1c1d1e1f},
                   .parent = 0x7c7d7e7f80818283,
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .medium = "GPU",
                   .group = 0,
                   .kind = "full_attention"},
                  {.type = "BlockRemoved",
                   .hashes = {0x7c7d7e7f80818283},
                   .medium = "GPU",
                   .group = 0}}},
      {.name = "vllm-next-ownership-session",
       .hex = "93cb41da26cb30100000918da474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
              "657391cf0123456789abcdefb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964"
              "7394017fcc80ccffaa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055"
              "a96c6f72615f6e616d65c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e"
              "64ae66756c6c5f617474656e74696f6ea86c6f63616c697479a54c4f43414ca96f776e6572736869"
              "70a46b766372aa73657373696f6e5f6964a7636f6e762d343200",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x0123456789abcdef},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .medium = "GPU",
                   .group = 0,
                   .kind = "full_attention",
                   .locality = "LOCAL",
                   .ownership = "kvcr",
                   .session_id = "conv-42"}}},
      {.name = "sglang-0.5.8-array",
       .hex = "93cb41da26cb301000009391b0416c6c426c6f636b73436c656172656496ab426c6f636b53746f72"
              "656491d38000000000000005c094017fcc80ccff04c092ac426c6f636b52656d6f76656491ff00",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "AllBlocksCleared"},
                  {.type = "BlockStored",
                   .hashes = {0x8000000000000005},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4},
                  {.type = "BlockRemoved", .hashes = {0xffffffffffffffff}}}},
      {.name = "sglang-0.5.9-array-medium",
       .hex = "93cb41da26cb301000009397ab426c6f636b53746f72656492d38000000000000005cf7000000000"
              "000001ff98017fcc80ccffcd0100cdffffce00010000ce0001f40004c0a347505597ab426c6f636b"
              "53746f72656491cf7000000000000001d3800000000000000594cd0100cdffffce00010000ce0001"
              "f40004c0aa4350555f50494e4e454493ac426c6f636b52656d6f76656491cf7000000000000001aa"
              "4350555f50494e4e454403",
       .timestamp = 1755000000.25,
       .rank = 3,
       .events = {{.type = "BlockStored",
                   .hashes = {0x8000000000000005, 0x7000000000000001},
                   .parent = 0xffffffffffffffff,
                   .tokens = {1, 127, 128, 255, 256, 65535, 65536, 128000},
                   .block_size = 4,
                   .medium = "GPU"},
                  {.type = "BlockStored",
                   .hashes = {0x7000000000000001},
                   .parent = 0x8000000000000005,
                   .tokens = {256, 65535, 65536, 128000},
                   .block_size = 4,
                   .medium = "CPU_PINNED"},
                  {.type = "BlockRemoved",
                   .hashes = {0x7000000000000001},
                   .medium = "CPU_PINNED"}}},
      {.name = "sglang-bigram",
       .hex = "93cb41da26cb301000009197ab426c6f636b53746f72656491cf7000000000000001c094920a0b92"
              "0b0c920c0d920d0e04c0a347505500",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x7000000000000001},
                   .tokens = {10, 11, 12, 13, 14},
                   .block_size = 4,
                   .medium = "GPU",
                   .bigram = true}}},
      {.name = "sglang-0.5.18-salted",
       .hex = "93cb41da26cb301000009198ab426c6f636b53746f72656491cf7000000000000001c094017fcc80"
              "ccff04c0a347505581aa63616368655f73616c74a874656e616e742d6100",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x7000000000000001},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .medium = "GPU",
                   .cache_salt = "tenant-a"}}},
      {.name = "trtllm-dynamo-relay-map",
       .hex = "93cb41da26cb301000009187a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
              "657391d38000000000000005b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964"
              "7394017fcc80ccffaa626c6f636b5f73697a6504aa63616368655f73616c74a874656e616e742d61"
              "ae626c6f636b5f6d6d5f696e666f7391c000",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x8000000000000005},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .cache_salt = "tenant-a"}}},
      {.name = "trtllm-native-map",
       .hex = "93cb41da26cb301000009288a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
              "657391d38000000000000005b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964"
              "7394017fcc80ccffaa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055"
              "a96c6f72615f6e616d65c083a474797065ac426c6f636b52656d6f766564ac626c6f636b5f686173"
              "68657391d38000000000000005a66d656469756da347505500",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x8000000000000005},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .medium = "GPU"},
                  {.type = "BlockRemoved", .hashes = {0x8000000000000005}, .medium = "GPU"}}},
      {.name = "llmd-sim-array",
       .hex = "93cb41da26cb301000009299ab426c6f636b53746f72656491cf0123456789abcdef0094017fcc80"
              "ccff04c0a3475055c0c093ac426c6f636b52656d6f76656491cf0123456789abcdefa347505500",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x0123456789abcdef},
                   .parent = 0x0000000000000000,
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .medium = "GPU"},
                  {.type = "BlockRemoved", .hashes = {0x0123456789abcdef}, .medium = "GPU"}}},
      {.name = "llmd-sim-map",
       .hex = "93cb41da26cb301000009186a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
              "657391cf0123456789abcdefb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964"
              "7394017fcc80ccffaa626c6f636b5f73697a6504a66d656469756da347505500",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x0123456789abcdef},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .medium = "GPU"}}},
      {.name = "tolerate-unknown-map-key",
       .hex = "93cb41da26cb301000009184a474797065ac426c6f636b52656d6f766564ac626c6f636b5f686173"
              "68657391cf0123456789abcdefa66d656469756da3475055a666757475726581a16193010281a162"
              "c000",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockRemoved", .hashes = {0x0123456789abcdef}, .medium = "GPU"}}},
      {.name = "tolerate-map-key-order",
       .hex = "93cb41da26cb301000009185aa626c6f636b5f73697a6504a9746f6b656e5f69647394017fcc80cc"
              "ffb1706172656e745f626c6f636b5f68617368c0ac626c6f636b5f68617368657391cf0123456789"
              "abcdefa474797065ab426c6f636b53746f72656400",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x0123456789abcdef},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4}}},
      {.name = "tolerate-array-extra-suffix",
       .hex = "93cb41da26cb3010000091dc0010ab426c6f636b53746f72656491cf0123456789abcdefc094017f"
              "cc80ccff04c0a3475055c0c000ae66756c6c5f617474656e74696f6ec0a54c4f43414cc0a1780700",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockStored",
                   .hashes = {0x0123456789abcdef},
                   .tokens = {1, 127, 128, 255},
                   .block_size = 4,
                   .medium = "GPU",
                   .group = 0,
                   .kind = "full_attention",
                   .locality = "LOCAL"}}},
      {.name = "tolerate-batch-2-elements",
       .hex = "92cb41da26cb301000009191b0416c6c426c6f636b73436c6561726564",
       .timestamp = 1755000000.25,
       .events = {{.type = "AllBlocksCleared"}}},
      {.name = "tolerate-unknown-event-type",
       .hex = "93cb41da26cb301000009392ad426c6f636b536e617073686f749301020382a474797065ab467574"
              "7572654576656e74a1780193ac426c6f636b52656d6f76656491cf0123456789abcdefa347505500",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "Unknown"},
                  {.type = "Unknown"},
                  {.type = "BlockRemoved", .hashes = {0x0123456789abcdef}, .medium = "GPU"}}},
      {.name = "tolerate-empty-medium",
       .hex = "93cb41da26cb301000009193ac426c6f636b52656d6f76656491cf0123456789abcdefa000",
       .timestamp = 1755000000.25,
       .rank = 0,
       .events = {{.type = "BlockRemoved", .hashes = {0x0123456789abcdef}}}},
      {.name = "tolerate-int-ts",
       .hex = "93ce689b2cc09191b0416c6c426c6f636b73436c656172656400",
       .timestamp = 1755000000.0,
       .rank = 0,
       .events = {{.type = "AllBlocksCleared"}}},
      {.name = "reject-truncated",
       .hex = "93cb41da26cb30100000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
              "657392cf0123456789abcdefcffedcba9876543210b1706172656e745f626c6f636b5f68617368c0"
              "a9746f6b656e5f69647398017fcc80ccffcd0100cdffffce00010000ce0001f400aa626c6f636b5f"
              "73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa657874"
              "72615f6b65797392c0c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e64"
              "ae66756c6c5f617474656e7469",
       .ok = false},
      {.name = "reject-not-a-batch", .hex = "81a27473cb41da26cb30100000", .ok = false},
      {.name = "reject-huge-length-prefix",
       .hex = "93cb41da26cb301000009192ac426c6f636b52656d6f766564dd7fffffff",
       .ok = false},
  };
  return kVectors;
}

}  // namespace baton::test
