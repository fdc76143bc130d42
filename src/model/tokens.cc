// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/tokens.h"

namespace baton::model {

std::string_view to_string(Tokenize tokenize) {
  switch (tokenize) {
    case Tokenize::Local:
      return "local";
    case Tokenize::Engine:
      return "engine";
    case Tokenize::Off:
      return "off";
  }
  return "unknown";
}

std::optional<Tokenize> parse_tokenize(std::string_view text) {
  for (const Tokenize value : {Tokenize::Local, Tokenize::Engine, Tokenize::Off}) {
    if (text == to_string(value)) return value;
  }
  return std::nullopt;
}

std::optional<SendTokenIds> parse_send_token_ids(std::string_view text) {
  if (text == "auto") return SendTokenIds::Auto;
  if (text == "always") return SendTokenIds::Always;
  if (text == "never") return SendTokenIds::Never;
  return std::nullopt;
}

}  // namespace baton::model
