// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors

// Renders a template file with the variables of a JSON context:
//   render chat_template.jinja '{"messages": [{"role": "user", "content": "hi"}]}'

#include "libs/jinja/jinja.h"

#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

namespace {

namespace jinja = baton::jinja;

int fail(const std::string& why) {
  std::cerr << "render: " << why << '\n';
  return 1;
}

int render(const std::string& path, const std::string& context) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail("cannot read " + path);
  const auto program = jinja::Template::parse(std::string(std::istreambuf_iterator(file), {}));
  if (!program) return fail(program.error().message());
  const auto variables = jinja::value_from_json(context);
  if (!variables) return fail(variables.error().message());
  if (!variables->is_dict()) return fail("The context is not a JSON object.");
  const auto text =
      (*program)->render(variables->as_dict(), {.now = std::chrono::system_clock::now()});
  if (!text) return fail(text.error().message());
  std::cout << *text;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return render(argv[1], argv[2]);
  std::cerr << "usage: render TEMPLATE_FILE JSON_CONTEXT\n";
  return 2;
}
