# SPDX-License-Identifier: Apache-2.0
# Writes a C++ file whose function returns the text of another file; see baton_embed in modules.cmake.
file(READ "${INPUT}" text)
file(WRITE "${OUTPUT}" "#include <string_view>

namespace ${NAMESPACE} {

std::string_view ${FUNCTION}();

std::string_view ${FUNCTION}() {
  return R\"EMBEDDED(${text})EMBEDDED\";
}

}  // namespace ${NAMESPACE}
")
