# For `find_package(mcp_sansio)`: defines the target mcp_sansio::mcp_sansio.
get_filename_component(_mcp_sansio_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET mcp_sansio::mcp_sansio)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  add_library(mcp_sansio::mcp_sansio STATIC IMPORTED)
  set_target_properties(mcp_sansio::mcp_sansio PROPERTIES
    IMPORTED_LOCATION "${_mcp_sansio_prefix}/lib/libmcp_sansio.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_mcp_sansio_prefix}/include")
  set_property(TARGET mcp_sansio::mcp_sansio PROPERTY
    INTERFACE_LINK_LIBRARIES Threads::Threads ${CMAKE_DL_LIBS} m)
endif()
