// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tokenizer_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace baton::tokenizer {
namespace {

// The models whose configured class transformers 5 sets aside for tokenizer.json itself.
constexpr std::string_view kFileModels[] = {"arctic",
                                            "aria",
                                            "bigbird_pegasus",
                                            "canary",
                                            "chameleon",
                                            "chatlm",
                                            "cohere_asr",
                                            "deepseek_ocr",
                                            "deepseek_ocr2",
                                            "deepseek_v2",
                                            "deepseek_v3",
                                            "deepseek_v32",
                                            "deepseek_v4",
                                            "deepseek_vl",
                                            "deepseek_vl_hybrid",
                                            "deepseek_vl_v2",
                                            "ernie4_5",
                                            "ernie4_5_moe",
                                            "flex_olmo",
                                            "fuyu",
                                            "glm",
                                            "glm4",
                                            "glm4_moe",
                                            "glm4_moe_lite",
                                            "glm4v",
                                            "glm4v_moe",
                                            "glm_image",
                                            "glmasr",
                                            "got_ocr2",
                                            "gpt_bigcode",
                                            "granite",
                                            "granitemoe",
                                            "granitemoehybrid",
                                            "granitemoeshared",
                                            "h2ovl_chat",
                                            "hyperclovax",
                                            "hyperclovax_vlm",
                                            "internlm2",
                                            "jamba",
                                            "janus",
                                            "kimi_k25",
                                            "kimi_linear",
                                            "kosmos-2",
                                            "llava",
                                            "llava_next",
                                            "mimo_v2_flash",
                                            "minicpm3",
                                            "minicpmv",
                                            "minicpmv4_6",
                                            "minicpmv4_7",
                                            "minimax_m2",
                                            "ministral",
                                            "ministral3",
                                            "mistral",
                                            "mistral3",
                                            "mixtral",
                                            "modernbert",
                                            "modernbert-decoder",
                                            "molmo",
                                            "molmo2",
                                            "nemotron",
                                            "nvfp4",
                                            "nystromformer",
                                            "olmo2",
                                            "olmo3",
                                            "olmo_hybrid",
                                            "opencua",
                                            "openvla",
                                            "paddleocr_vl",
                                            "pegasus_x",
                                            "persimmon",
                                            "phi3",
                                            "phi3_v",
                                            "phimoe",
                                            "pix2struct",
                                            "pixtral",
                                            "qwen2",
                                            "qwen3_5",
                                            "qwen3_5_moe",
                                            "qwen3_5_moe_text",
                                            "qwen4_exp",
                                            "smolvlm",
                                            "stablelm",
                                            "step3_vl",
                                            "step3p5",
                                            "umt5",
                                            "vipllava",
                                            "voxtral",
                                            "voxtral_realtime",
                                            "xlm-roberta-xl"};

bool is_byte_level(simdjson::dom::element pre_tokenizer) {
  std::string_view type;
  if (pre_tokenizer["type"].get(type) != simdjson::SUCCESS) return false;
  if (type == "ByteLevel") return true;
  simdjson::dom::array steps;
  if (pre_tokenizer["pretokenizers"].get(steps) != simdjson::SUCCESS) return false;
  return std::ranges::any_of(steps, is_byte_level);
}

}  // namespace

bool sets_special_tokens(const TokenizerConfig& config) {
  for (const std::string_view name :
       {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer"}) {
    if (config.tokenizer_class == name) return true;
  }
  return false;
}

std::optional<std::string> rebuilt_pre_tokenizer(const TokenizerConfig& config,
                                                 std::string_view model_type,
                                                 simdjson::dom::element file) {
  const bool llama = config.tokenizer_class == "LlamaTokenizer";
  if ((!llama && config.tokenizer_class != "GPT2Tokenizer") || config.remote_code)
    return std::nullopt;
  if (std::ranges::find(kFileModels, model_type) != std::end(kFileModels)) return std::nullopt;
  std::string_view model;
  if (file["model"]["type"].get(model) != simdjson::SUCCESS || model != "BPE") return std::nullopt;
  simdjson::dom::element own;
  const bool bytes = file["pre_tokenizer"].get(own) == simdjson::SUCCESS && is_byte_level(own);
  if (bytes == llama) return std::nullopt;
  if (!llama) {
    std::string_view type;
    const bool plain = own["type"].get(type) == simdjson::SUCCESS && type == "ByteLevel";
    if (plain && !file["normalizer"].is_object()) return std::nullopt;  // nothing would change
    return fmt::format(R"({{"type":"ByteLevel","add_prefix_space":{},"trim_offsets":true}})",
                       config.add_prefix_space.value_or(false));
  }
  std::string_view scheme = config.legacy.value_or(false) ? "always" : "first";
  if (!config.add_prefix_space.value_or(true)) scheme = "never";
  return fmt::format(
      R"({{"type":"Metaspace","replacement":"▁","prepend_scheme":"{}","split":false}})", scheme);
}

}  // namespace baton::tokenizer
