/* A row for each type of samples.  No include guard: whoever includes it says what TYPE is. */
TYPE(UINT8, uint8_t)
TYPE(INT8, int8_t)
TYPE(UINT16, uint16_t)
TYPE(INT16, int16_t)
TYPE(INT32, int32_t)
TYPE(INT64, int64_t)
TYPE(FLOAT32, float)
TYPE(FLOAT64, double)
#undef TYPE
