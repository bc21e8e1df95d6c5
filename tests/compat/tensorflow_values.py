"""Expressions of TensorFlow, and their values as plain objects: `tensorflow_recorded` has what TensorFlow gives."""

# ruff: noqa: E501
#: the expressions, by what they are of; `D` is tf.data.Dataset, `folder` holds a few files
EXPRESSIONS = {
    "strings": """
        tf.strings.as_string([1.5, 2.25])
        tf.strings.as_string([True])
        tf.strings.as_string(3.0, shortest=True)
        tf.strings.as_string(3.0, scientific=True)
        tf.strings.as_string(5, width=3, fill='0')
        tf.strings.as_string(2.5, precision=2)
        tf.strings.bytes_split('abc')
        tf.strings.format('a {} b {}', (tf.range(10), 'x'))
        tf.strings.format('{}', tf.constant([[1, 2], [3, 4]]))
        tf.strings.join(['a', ['b', 'c']], '-')
        tf.strings.length(['a\u00e9', 'b'])
        tf.strings.length(['a\u00e9'], unit='UTF8_CHAR')
        tf.strings.lower('\u00c0B')
        tf.strings.lower('\u00c0B', encoding='utf-8')
        tf.strings.ngrams(['a', 'b', 'c'], 2, pad_values=('<', '>'))
        tf.strings.ngrams(['a', 'b', 'c'], [1, 3], separator='|')
        tf.strings.ngrams(['a', 'b'], [3], preserve_short_sequences=True)
        tf.strings.reduce_join([['a', 'b'], ['c', 'd']], axis=0, separator='-')
        tf.strings.reduce_join([['a', 'b'], ['c', 'd']], axis=[1, 0])
        tf.strings.reduce_join([['a', 'b'], ['c', 'd']], axis=1, keepdims=True)
        tf.strings.reduce_join([['a', 'b'], ['c', 'd']])
        tf.strings.regex_full_match(['ab', 'b'], 'a.')
        tf.strings.regex_replace('abab', '(a)(b)', r'\\2\\1')
        tf.strings.regex_replace('abab', 'b', 'x', replace_global=False)
        tf.strings.split('a b  c')
        tf.strings.split('a,b,,c', ',')
        tf.strings.split('a/b/c.png', '/')[-1]
        tf.strings.split('a,b,c', ',', maxsplit=1)
        tf.strings.strip([' a ', 'b\\n'])
        tf.strings.substr('hello', 1, 3)
        tf.strings.substr('abc', -2, 5)
        tf.strings.substr(['h\u00e9llo', 'abcd'], [1, 2], [2, 1], unit='UTF8_CHAR')
        tf.strings.substr('abc', 5, 2)
        tf.strings.to_number('3', tf.int32)
        tf.strings.to_number(['3.5', '-1e3'])
        tf.strings.to_number('x')
        tf.strings.unicode_decode('a\u00e9', 'UTF-8')
        tf.strings.unicode_encode([97, 233], 'UTF-8')
        tf.strings.unicode_encode([[97, 233], [98, 99]], 'UTF-8')
        tf.strings.unicode_split('a\u00e9', 'UTF-8')
        tf.strings.unicode_transcode('a\u00e9', 'UTF-8', 'UTF-16-BE')
        tf.strings.unsorted_segment_join(['a', 'b', 'c'], [0, 1, 0], 2)
        tf.strings.upper(b'ab')
        tf.constant('a') + 'b'
        tf.constant('a') == 'a'
        tf.constant(['a', 'b']) == ['a', 'c']
        tf.constant(['a', 'b'])[0]
        tf.argmax(tf.constant('b') == ['a', 'b'])
        tf.equal(tf.constant(['a', 'b']), 'a')
        tf.not_equal('a', tf.constant('b'))
        tf.concat([tf.constant(['a']), ['b', 'c']], 0)
        tf.concat(values=[['a'], ['b']], axis=0)
        tf.stack([tf.constant('a'), 'b'])
        tf.reshape(['a', 'b'], [2, 1])
        tf.transpose([['a', 'b']])
        tf.tile(['a'], [2])
        tf.gather(['a', 'b', 'c'], [2, 0])
        tf.expand_dims(tf.constant('a'), 0)
        tf.squeeze([['a']])
        tf.reverse(['a', 'b'], [0])
        tf.boolean_mask(tf.constant(['a', 'b']), [False, True])
        tf.where([True, False], ['a', 'b'], ['c', 'd'])
        tf.repeat(['a', 'b'], 2)
        tf.roll(['a', 'b', 'c'], 1, 0)
        tf.broadcast_to('a', [2])
        tf.fill([2], 'x')
        tf.zeros_like(['a'])
        tf.identity(['a'])
        [tf.shape(tf.constant(['a', 'b'])), tf.size(['a', 'b']), tf.rank(tf.constant('a'))]
        tf.unique(['b', 'a', 'b'])[0]
        [tf.is_tensor(tf.constant('a')), tf.constant('a').dtype == tf.string]
        tf.strings.to_hash_bucket_fast(['a', 'bc', ''], 1000)
        tf.strings.to_hash_bucket_strong(['a', 'bc'], 1000, [1, 2])
        tf.constant('a') == tf.constant(b'a')
        [isinstance(tf.constant('a'), tf.Tensor), isinstance(tf.constant([1]), tf.Tensor), isinstance(1, tf.Tensor)]
        repr(tf.constant('a'))
        str(tf.constant(['a', 'b']))
    """,
    "dtypes": """
        repr(tf.float32)
        [tf.float32 == 'float32', tf.float32 == np.float32, tf.float32 != tf.float64, tf.float32 == None]
        [t.name for t in (tf.half, tf.double, tf.as_dtype('float'), tf.as_dtype(np.int8), tf.as_dtype(bool))]
        [t.as_numpy_dtype.__name__ for t in (tf.float32, tf.string, tf.bool, tf.uint8)]
        [t.size for t in (tf.float64, tf.bool, tf.bfloat16, tf.complex64)]
        [(t.is_floating, t.is_integer, t.is_bool, t.is_complex, t.is_unsigned, t.is_numeric) for t in DTYPES]
        [(t.is_numpy_compatible, t.is_quantized) for t in DTYPES]
        [t.limits for t in (tf.uint8, tf.int8, tf.float32)]
        [t.real_dtype.name for t in (tf.complex128, tf.float32)]
        [tf.int32.min, tf.int32.max, tf.uint8.max]
        [tf.float32.is_compatible_with(tf.float64), tf.int32.base_dtype.name]
        tf.as_dtype('nothing')
        {tf.float32: 1}[tf.constant(1.0).dtype]
        tf.constant([1.0]).dtype in (tf.float32, tf.float64)
        [tf.constant([1.0]).dtype is tf.float32, tf.Variable(1).dtype == tf.int32]
        tf.constant([1.0]).dtype.as_numpy_dtype.__name__
        repr(tf.constant('a').dtype)
        repr(tf.TensorShape([None, 2]))
        [str(tf.TensorShape(None)), str(tf.TensorShape([1, None]))]
        repr(tf.TensorShape([1, 2])[:1])
        tf.TensorShape([1, 2]) == [1, 2]
        [tf.TensorShape([2, 3]).num_elements(), tf.TensorShape([2, None]).num_elements()]
        [tf.TensorShape([2, None]).is_fully_defined(), tf.TensorShape([2]).concatenate([3]).as_list()]
        [tf.TensorShape([2, None]).is_compatible_with([2, 5]), tf.TensorShape([2, None]).is_compatible_with([3, 5])]
        repr(tf.TensorShape([2, None]).merge_with([None, 5]))
        tf.TensorShape([2]).merge_with([3])
        tf.TensorShape(None).as_list()
        [tf.TensorShape(None).rank, tf.TensorShape([1]).rank, tf.TensorShape([1, None]).dims is None]
        repr(tf.TensorSpec([None], tf.int32))
        repr(tf.TensorSpec(None))
        tf.TensorSpec([None, 2], tf.int32, 'x') == tf.TensorSpec((None, 2), 'int32', 'x')
        tf.TensorSpec([None, 2]).is_compatible_with(tf.constant([[1.0, 2.0]]))
        repr(tf.TensorSpec.from_tensor(tf.constant([[1, 2]])))
    """,
    "tensors": """
        f'{tf.constant(1.5)} {tf.constant(1.5):.3f}'
        '%.2f %d' % (tf.constant(1.5), tf.constant(3))
        [repr(tf.constant(1.5)), str(tf.constant([1, 2])), repr(tf.constant([True]))]
        [tf.constant(1) == None, tf.constant(1) != None, tf.constant([1]) == None]
        tf.constant(2) == 2
        tf.constant([1.0, 2.0])[0]
        list(tf.constant([1, 2]))
        [list(row) for row in tf.constant([[1, 2], [3, 4]])]
        tf.constant([1.0, 2.0])[0] * 2 + 1
        -tf.constant(1.5)
        1 / tf.constant(4.0)
        abs(tf.constant(-2))
        tf.constant(3.0) > 2
        tf.reduce_sum([1.0, 2.0]) / 2
        tf.constant(7) // 2
        tf.constant(7) % 4
        tf.constant(2.0) ** 3
        tf.size([[1, 2], [3, 4]])
        tf.rank([[1, 2], [3, 4]])
        tf.shape([[1, 2], [3, 4]])[0]
        tf.shape([[1, 2, 3], [3, 4, 5]])
        list(tf.range(3))
        tf.ensure_shape(tf.constant([1, 2]), [None])
        tf.ensure_shape(tf.constant([1, 2]), [3])
        tf.Variable([1.0, 2.0]).value()
        tf.Variable([1.0, 2.0]).read_value()
        tf.Variable([1.0, 2.0])[0]
        tf.Variable(3)
        tf.Variable(2.0) * 2
        np.abs(GRADIENT)
        np.mean(GRADIENT)
        np.concatenate([GRADIENT, GRADIENT])
        GRADIENT[0]
        GRADIENT + np.ones(2, 'float32')
        np.ones(2, 'float32') + GRADIENT
    """,
    "data": """
        D.from_tensor_slices(['a', 'b'])
        D.from_tensor_slices((['a', 'b'], [1, 2])).batch(2)
        list(D.from_tensor_slices({'x': [1.5], 'y': ['a']}).as_numpy_iterator())
        list(D.from_tensor_slices(['a', 'b']).batch(2).as_numpy_iterator())
        list(D.list_files(folder + '/*.txt', shuffle=False).map(lambda x: tf.strings.split(x, '/')[-1]).as_numpy_iterator())
        D.list_files(folder + '/*.none', shuffle=False)
        D.from_tensor_slices(['a/b']).map(lambda x: tf.numpy_function(lambda p: p.decode() + '!', [x], tf.string))
        D.range(2).map(lambda x: tf.py_function(lambda n: float(n.numpy()) / 2, [x], tf.float32))
        D.range(2).map(lambda x: tf.numpy_function(lambda n: (n + 1, n * 2.0), [x], [tf.int64, tf.float64]))
        D.from_tensors([1, 2])
        D.from_generator(lambda: iter([1, 2]), output_types=tf.int32)
        D.from_generator(lambda: iter([(1, [2.0])]), output_signature=(SPEC, tf.TensorSpec([None], tf.float32)))
        D.from_generator(lambda: iter([(1, 2.0)]), (tf.int32, tf.float32), (tf.TensorShape([]), ()))
        D.from_generator(lambda n: iter(range(n)), tf.int64, args=[3])
        D.from_generator(lambda: iter([[1.5]]), output_signature=SPEC)
        D.from_generator(lambda: iter(['a']), tf.string)
        D.range(1, 8, 3)
        D.range(2, output_type=tf.int32)
        D.counter(3, 2).take(2)
        D.random(seed=1).take(3).map(lambda x: tf.cast(x >= 0, tf.int32))
        D.zip((D.range(3), D.range(2)))
        D.zip(D.range(3), {'a': D.range(2)})
        D.range(6).apply(lambda d: d.skip(4))
        D.range(5).batch(2)
        D.range(5).batch(2, drop_remainder=True)
        D.from_tensor_slices([[1], [2]]).concatenate(D.from_tensors([3]))
        D.range(5).cardinality()
        D.range(5).repeat().cardinality()
        D.range(5).filter(lambda x: x > 2).cardinality()
        D.choose_from_datasets([D.from_tensors(0).repeat(), D.from_tensors(1).repeat()], D.from_tensor_slices(np.int64([0, 1, 1])))
        D.choose_from_datasets([D.range(1), D.range(5)], D.from_tensor_slices(np.int64([0, 0, 1])))
        D.sample_from_datasets([D.range(3), D.range(3)], weights=[0.0, 1.0])
        D.range(3).enumerate(start=5)
        D.range(6).filter(lambda x: x % 2 == 0)
        D.range(3).flat_map(lambda x: D.range(x))
        D.range(1, 4).interleave(lambda x: D.from_tensors(x).repeat(3), cycle_length=2, block_length=2)
        D.from_tensors([1, 2]).get_single_element()
        D.range(3).get_single_element()
        D.range(8).group_by_window(lambda x: x % 2, lambda key, d: d.batch(3), window_size=3)
        D.from_generator(lambda: iter([[0], [1, 2], [3, 4, 5], [6]]), tf.int32, [None]).bucket_by_sequence_length(lambda x: tf.shape(x)[0], [2, 3], [2, 1, 1])
        D.from_generator(lambda: iter([[0], [1, 2]]), tf.int32, [None]).bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 1, 1], pad_to_bucket_boundary=True)
        D.from_tensor_slices([1.0, 0.0, 4.0]).map(lambda x: tf.debugging.check_numerics(1.0 / x, '')).ignore_errors()
        D.range(3).map(lambda x: (x, x * 2))
        D.range(3).map(lambda x: {'a': x, 'b': [x, x]})
        D.range(1, 4).map(lambda x: tf.fill([x], x)).padded_batch(2)
        D.range(1, 4).map(lambda x: tf.fill([x], x)).padded_batch(2, padded_shapes=[4], padding_values=np.int64(-1))
        D.range(3).prefetch(tf.data.AUTOTUNE)
        D.range(7).batch(3).rebatch(2)
        D.range(7).batch(3).rebatch([2, 1])
        D.range(7).batch(3).rebatch(2, drop_remainder=True)
        D.range(4).reduce(np.int64(0), lambda s, x: s + x)
        D.range(4).reduce((np.int64(0), np.int64(1)), lambda s, x: (s[0] + x, s[1] * 2))
        D.range(2).repeat(2)
        D.range(5).scan(np.int64(0), lambda s, x: (s + x, s + x))
        D.range(5).shard(2, 1)
        D.range(5).shard(2, 2)
        D.range(5).shuffle(5).reduce(np.int64(0), lambda s, x: s + x)
        D.range(5).skip(3)
        D.range(5).take(2)
        D.range(5).take(-1)
        D.range(5).take_while(lambda x: x < 3)
        D.from_tensor_slices([[1, 2], [3, 4]]).unbatch()
        D.from_tensor_slices([1, 2, 1, 3, 2]).unique()
        D.from_tensor_slices(['a', 'b', 'a']).unique()
        [[int(i) for i in w] for w in D.range(7).window(3)]
        [[int(i) for i in w] for w in D.range(7).window(3, drop_remainder=True)]
        [[int(i) for i in w] for w in D.range(7).window(3, shift=2, stride=2)]
        [[int(i) for i in w] for w in D.range(7).window(3, shift=2, stride=2, drop_remainder=True)]
        [[int(i) for i in w] for w in D.range(7).window(2, shift=4)]
        [[int(i) for i in w] for w in D.range(3).window(1, shift=5)]
        D.range(7).window(3, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(3))
        D.from_tensor_slices((['a', 'b', 'c'], [1.0, 2.0, 3.0])).window(2).flat_map(lambda x, y: D.zip((x.batch(2), y.batch(2))))
        D.range(3).apply(tf.data.experimental.assert_cardinality(3))
        D.range(3).apply(tf.data.experimental.assert_cardinality(2))
        D.range(3).apply(tf.data.experimental.assert_cardinality(4))
        D.range(3).apply(tf.data.experimental.map_and_batch(lambda x: x + 1, 2))
        D.range(3).cache()
        D.range(3).with_options(tf.data.Options())
        D.range(3).options().deterministic
        [D.range(4).save(folder + '/saved'), D.load(folder + '/saved')][1]
        D.range(3).snapshot(folder + '/kept')
        iter(D.range(3)).get_next()
        D.range(3).as_numpy_iterator().next()
        next(iter(D.range(3)))
        [repr(type(x)) for x in D.from_tensors((1, 'a', [1.0])).as_numpy_iterator().next()]
        D.from_tensor_slices([0.2, 0.8, 0.9]).rejection_resample(lambda x: tf.cast(x > 0.5, tf.int32), [0.0, 1.0], [0.3, 0.7]).map(lambda c, x: c)
        [write(folder + '/r', None), tf.io.read_file(folder + '/r'), tf.data.TFRecordDataset(folder + '/r')]
        [write(folder + '/g', 'GZIP'), tf.data.TFRecordDataset([folder + '/g'], compression_type='GZIP')]
        [write(folder + '/z', tf.io.TFRecordOptions(compression_type='ZLIB')), tf.data.TFRecordDataset(folder + '/z', 'ZLIB')]
        tf.data.TFRecordDataset(folder + '/first.gzip', 'GZIP')
        tf.data.TFRecordDataset(D.list_files(folder + '/first.zlib'), compression_type='ZLIB', num_parallel_reads=2)
        tf.data.TFRecordDataset(folder + '/a.csv')
        tf.data.TFRecordDataset(folder + '/bad')
        tf.data.TFRecordDataset(folder + '/cut')
        tf.data.TFRecordDataset(folder + '/none')
        tf.data.TextLineDataset(folder + '/a.txt')
        tf.data.TextLineDataset([folder + '/a.txt', folder + '/b.txt']).skip(1)
        tf.data.FixedLengthRecordDataset(folder + '/a.txt', 2, header_bytes=1, footer_bytes=1)
        tf.data.FixedLengthRecordDataset(folder + '/a.txt', 4)
        tf.data.experimental.make_csv_dataset(folder + '/a.csv', 2, shuffle=False, num_epochs=1)
        tf.data.experimental.make_csv_dataset(folder + '/a.csv', 2, label_name='c', shuffle=False, num_epochs=1, select_columns=['a', 'c'])
        tf.data.experimental.make_csv_dataset(folder + '/a.csv', 2, label_name='c', shuffle=False).take(2)
        tf.data.experimental.make_csv_dataset(folder + '/a.csv', 3, column_names=['x', 'y', 'z', 'w'], column_defaults=[0.0, 'q', 5, tf.string], shuffle=False, num_epochs=1)
        tf.data.experimental.CsvDataset(folder + '/a.csv', [tf.int32, 'q', [5.0], tf.string], header=True)
        tf.data.experimental.CsvDataset(folder + '/a.csv', [tf.int32, tf.string], header=True, select_cols=[0, 3])
        tf.data.experimental.CsvDataset(folder + '/a.csv', [tf.int32, tf.float32, tf.float32, tf.string], header=True)
    """,
    "specs": """
        D.range(3).element_spec
        D.range(5).batch(2).element_spec
        D.range(5).batch(2, drop_remainder=True).element_spec
        D.from_tensor_slices({'a': [[1, 2]], 'b': ['x']}).shuffle(4).batch(2).prefetch(1).element_spec
        D.from_tensor_slices(np.zeros((4, 2))).batch(2).map(lambda x: tf.cast(x, tf.float32) * 2).element_spec
        D.from_tensor_slices(np.zeros((4, 2))).batch(2, True).map(lambda x: (x, x[0])).element_spec
        D.from_tensor_slices(np.zeros((4, 2))).batch(2).unbatch().element_spec
        D.from_generator(lambda: iter([1]), output_types=tf.int32).element_spec
        D.from_generator(lambda: iter([1]), output_signature=(SPEC, SPEC)).element_spec
        D.zip((D.range(3), D.range(3).batch(2))).element_spec
        D.range(3).enumerate().element_spec
        D.from_tensors([1, 2]).concatenate(D.from_tensors([1])).element_spec
        D.from_tensors([[1, 2]]).padded_batch(2).element_spec
        D.range(3).filter(lambda x: x > 5).element_spec
        D.range(3).flat_map(lambda x: D.from_tensors('a')).element_spec
        iter(D.range(3)).element_spec
        tf.data.TextLineDataset(folder + '/a.txt').element_spec
        repr(D.range(3)).split(' ', 1)[1]
        repr(D.from_tensor_slices({'a': [1]}).batch(2)).split(' ', 1)[1]
    """,
    "io": """
        tf.io.read_file(folder + '/a.txt')
        tf.io.matching_files(folder + '/*.txt')[0] == folder + '/a.txt'
        [tf.io.write_file(folder + '/new/w.bin', b'a\\0b'), tf.io.read_file(folder + '/new/w.bin')][1]
        tf.io.decode_raw(b'\\1\\0\\2\\0', tf.int16)
        tf.io.decode_raw([b'\\1\\0', b'\\2\\0'], tf.uint8)
        tf.io.decode_raw(b'\\1\\0', tf.int16, little_endian=False)
        tf.io.decode_raw(b'\\1\\0\\3', tf.int16)
        tf.io.decode_raw([b'abc', b'd'], tf.uint8, fixed_length=2)
        tf.io.decode_csv(['1,2.5,a', ',,"b,c"'], [[0], [1.0], ['z']])
        tf.io.decode_csv('1;x', [[0], ['']], field_delim=';')
        tf.io.decode_csv('1,,3', [[0], [7], [0]], select_cols=[0, 1, 2])
        tf.io.decode_csv(',1', [tf.int32, tf.int32])
        tf.io.decode_csv('NA,1', [[5], [0]], na_value='NA')
        tf.io.decode_csv('1,2,3', [[5], [0]])
        tf.io.decode_csv('a,2', [[5], [0]])
        tf.io.encode_base64('ab>')
        tf.io.encode_base64('ab', pad=True)
        tf.io.decode_base64('YWI-')
        tf.io.decode_compressed(ZLIB, 'ZLIB')
        tf.io.serialize_tensor([1.5, 2.0])
        tf.io.serialize_tensor([['a', 'b']])
        tf.io.parse_tensor(tf.io.serialize_tensor([[1, 2]]), tf.int32)
        tf.io.parse_tensor(tf.io.serialize_tensor([['a', 'b']]), tf.string)
        tf.io.parse_tensor(tf.io.serialize_tensor([True]), tf.bool)
        tf.io.parse_tensor(tf.io.serialize_tensor([1]), tf.float32)
        tf.io.parse_single_example(EXAMPLE, {'x': tf.io.FixedLenFeature([2], tf.float32), 'y': tf.io.FixedLenFeature([], tf.int64), 's': tf.io.FixedLenFeature([], tf.string)})
        tf.io.parse_single_example(EXAMPLE, {'x': tf.io.FixedLenFeature([3], tf.float32)})
        tf.io.parse_single_example(EXAMPLE, {'x': tf.io.FixedLenFeature([2], tf.int64)})
        tf.io.parse_single_example(EXAMPLE, {'none': tf.io.FixedLenFeature([], tf.int64)})
        tf.io.parse_single_example(EXAMPLE, {'none': tf.io.FixedLenFeature([], tf.int64, default_value=7)})
        tf.sparse.to_dense(tf.io.parse_single_example(EXAMPLE, {'x': tf.io.VarLenFeature(tf.float32)})['x'])
        tf.io.parse_single_example(EXAMPLE, {'none': tf.io.VarLenFeature(tf.string)})['none'].dense_shape
        tf.io.parse_single_example(EXAMPLE, {'x': tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True)})
        tf.io.parse_example([EXAMPLE, OTHER], {'y': tf.io.FixedLenFeature([], tf.int64)})
        tf.sparse.to_dense(tf.io.parse_example([EXAMPLE, OTHER], {'x': tf.io.VarLenFeature(tf.float32)})['x'])
        tf.io.parse_example([EXAMPLE, OTHER], {'x': tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True)})
        tf.io.parse_single_example(b'nonsense', {})
        tf.io.parse_single_sequence_example(SEQUENCE, {'y': tf.io.FixedLenFeature([], tf.int64)}, {'x': tf.io.FixedLenSequenceFeature([2], tf.float32)})
        tf.io.parse_single_example(tf.io.decode_json_example(JSON), {'y': tf.io.FixedLenFeature([], tf.int64)})
        EXAMPLE
        [repr(tf.train.Example.FromString(OTHER).features.feature[k]) for k in 'xy']
        repr(tf.train.Example.FromString(EXAMPLE).features.feature['s'])
        tf.train.Example.FromString(EXAMPLE).features.feature['x'].float_list.value[1]
        tf.train.Example.FromString(EXAMPLE) == tf.train.Example.FromString(EXAMPLE)
        tf.train.Feature(bytes_list=tf.train.BytesList(value=['text']))
        tf.train.Feature(int64_list=tf.train.Int64List(value=[-1, 2**40])).SerializeToString()
        tf.train.Feature(int64_list=tf.train.Int64List(value=[1.5]))
        tf.train.Feature(float_list=tf.train.FloatList(value=np.array([1.5]))).WhichOneof('kind')
        tf.io.gfile.exists(folder + '/a.txt')
        sorted(tf.io.gfile.listdir(folder))[:3]
        len(tf.io.gfile.glob([folder + '/*.txt', folder + '/*.csv']))
        [tf.io.gfile.makedirs(folder + '/m/n'), tf.io.gfile.isdir(folder + '/m/n')]
        [tf.io.gfile.copy(folder + '/a.txt', folder + '/c.log'), tf.io.gfile.stat(folder + '/c.log').length]
        tf.io.gfile.copy(folder + '/a.txt', folder + '/b.txt')
        [tf.io.gfile.rename(folder + '/c.log', folder + '/d.log'), tf.io.gfile.exists(folder + '/c.log')]
        [tf.io.gfile.remove(folder + '/d.log'), tf.io.gfile.rmtree(folder + '/m'), tf.io.gfile.exists(folder + '/m')]
        tf.io.gfile.join('a', 'b')
        [tf.io.gfile.mkdir(folder + '/one'), tf.io.gfile.isdir(folder + '/one')]
        [files for _, _, files in tf.io.gfile.walk(folder + '/new')]
        'file' in tf.io.gfile.get_registered_schemes()
        [tf.io.gfile.GFile(folder + '/a.txt').read(), tf.io.gfile.GFile(folder + '/a.txt', 'rb').size()]
        [line for line in tf.io.gfile.GFile(folder + '/b.txt')]
    """,
    "lookup": """
        TABLE.lookup(tf.constant(['b', 'z']))
        TABLE[tf.constant('a')]
        TABLE.size()
        TABLE.lookup(tf.constant([1]))
        sorted(TABLE.export()[0].numpy().tolist())
        tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], ['x', 'y']), '?').lookup(tf.constant([2, 5]))
        tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(['a', 'a'], [1, 2]), 0)
        tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(folder + '/b.txt', tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1).lookup(tf.constant(['three', 'four']))
        tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(['a', 'b'], np.int64([0, 1])), 1).lookup(tf.constant(['b', 'zz']))
        tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(['a', 'b'], np.int64([0, 1])), 3).size()
        D.from_tensor_slices(['a', 'b']).map(TABLE.lookup)
        tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(['a', 'b'], np.int64([0, 1])), 50).lookup(tf.constant(['b', 'x', 'y']))
        tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(np.int64([5, 6]), np.int64([0, 1])), 50).lookup(tf.constant(np.int64([6, 7, 8])))
        tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1).size()
        [CHANGING.insert(tf.constant(['k', 'l']), np.int64([5, 6])), CHANGING.remove(tf.constant(['l'])), CHANGING.lookup(tf.constant(['k', 'l'])), CHANGING.size()]
    """,
}  # fmt: skip
_PACKED = b"ce\x80\x80W\x9bX\xec\xd22\x8b\x8aKB\xff+?\x85\x8a1h2\xcf`\xbf\xf1\xaai\x11\x00"
_RECORD = b"\x05\0\0\0\0\0\0\0\xea\xb2\x04>firstU\xff#\xe5"
#: the records b"first" and b"" as TensorFlow has written them, and one that is damaged
FILES = {
    "a.txt": b"one\ntwo\n",
    "b.txt": b"three\r\nfour",
    "a.csv": b'a,b,c,d\n1,2.5,,x\n2,3.5,7,"y,z"\n3,,9,\n',
    "first.gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + _PACKED + b"\x9b\x1aB\xea%\x00\x00\x00",
    "first.zlib": b"x\x9c" + _PACKED + b"\x9f\x12\n\x19",
    "bad": _RECORD.replace(b"first", b"fIrst"),
    "cut": _RECORD[:-3],
}


def names_of(tf, np, folder):
    """What the expressions may name; the files that they read are written."""
    import zlib

    for name, text in FILES.items():
        (folder / name).write_bytes(text)
    train = tf.train
    floats = [train.Feature(float_list=train.FloatList(value=v)) for v in ([1.0, 2.5], [3.0])]
    ints = [train.Feature(int64_list=train.Int64List(value=[v])) for v in (-3, 4)]
    text = train.Feature(bytes_list=train.BytesList(value=[b"\x00abc"]))
    example = train.Example(features=train.Features(feature={"x": floats[0], "y": ints[0], "s": text}))
    other = train.Example(features=train.Features(feature={"x": floats[1], "y": ints[1]}))
    steps = train.FeatureLists(feature_list={"x": train.FeatureList(feature=[floats[0], floats[0]])})
    sequence = train.SequenceExample(context=train.Features(feature={"y": ints[1]}), feature_lists=steps)
    v = tf.Variable([3.0, -4.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v * v)
    values = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([10, 20]))

    def write(path, options):
        with tf.io.TFRecordWriter(path, options) as writer:
            writer.write(b"first")
            writer.write(bytes(range(256)) * 2)

    return {
        "write": write, "tf": tf, "np": np, "folder": str(folder), "D": tf.data.Dataset, "SPEC": tf.TensorSpec([], tf.int32),
        "DTYPES": (tf.float16, tf.bfloat16, tf.uint8, tf.int64, tf.bool, tf.string, tf.complex64),
        "EXAMPLE": example.SerializeToString(deterministic=True), "OTHER": other.SerializeToString(),
        "SEQUENCE": sequence.SerializeToString(), "ZLIB": zlib.compress(b"packed"),
        "JSON": '{"features": {"feature": {"y": {"int64List": {"value": [3]}}}}}',
        "GRADIENT": tape.gradient(loss, v), "CHANGING": tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1),
        "TABLE": tf.lookup.StaticHashTable(values, -1),
    }  # fmt: skip


def plain(value, tf):
    """Tensors as (dtype, nested lists), data sets as the list of their elements, specs as their text."""
    if isinstance(value, tf.data.Dataset):
        return ["dataset", *(plain(each, tf) for each in value.take(9))]
    if isinstance(value, tf.TensorSpec):
        return repr(value)
    if isinstance(value, dict):
        return {key: plain(each, tf) for key, each in sorted(value.items())}
    if isinstance(value, tuple) and not hasattr(value, "numpy"):
        return tuple(plain(each, tf) for each in value)
    if isinstance(value, list):
        return [plain(each, tf) for each in value]
    if hasattr(value, "numpy"):
        found = value.numpy()
        return tf.as_dtype(value.dtype).name, found.tolist() if hasattr(found, "tolist") else found
    if hasattr(value, "tolist"):
        return value.dtype.name, value.tolist()
    return value if isinstance(value, (bool, int, float, str, bytes, type(None))) else repr(value)


def outcomes(tf, np, folder):
    """By module and expression the value, or "raises"."""
    names = names_of(tf, np, folder)
    found = {}
    for text in EXPRESSIONS.values():
        for line in filter(None, map(str.strip, text.splitlines())):
            try:
                found[line] = plain(eval(line, dict(names)), tf)
            except Exception:
                found[line] = "raises"
    return found
