"""Grad-CAM: the gradient of a class's score by an inner image."""

import numpy as np
import tensorflow as tf

import keras
from keras import layers

keras.utils.set_random_seed(10)
inputs = keras.Input((24, 24, 3))
x = layers.Conv2D(8, 3, activation="relu", name="first")(inputs)
x = layers.MaxPooling2D()(x)
x = layers.Conv2D(12, 3, name="last_conv")(x)
x = layers.BatchNormalization()(x)
x = layers.Activation("relu", name="last_activation")(x)
x = layers.GlobalAveragePooling2D()(x)
model = keras.Model(inputs, layers.Dense(5, activation="softmax")(x))
model.layers[-1].activation = None
img_array = np.random.default_rng(0).random((1, 24, 24, 3)).astype("float32")


def make_gradcam_heatmap(img_array, model, last_conv_layer_name, pred_index=None):
    grad_model = keras.models.Model(model.inputs, [model.get_layer(last_conv_layer_name).output, model.output])
    with tf.GradientTape() as tape:
        last_conv_layer_output, preds = grad_model(img_array)
        if pred_index is None:
            pred_index = tf.argmax(preds[0])
        class_channel = preds[:, pred_index]
    grads = tape.gradient(class_channel, last_conv_layer_output)
    pooled_grads = tf.reduce_mean(grads, axis=(0, 1, 2))
    last_conv_layer_output = last_conv_layer_output[0]
    heatmap = last_conv_layer_output @ pooled_grads[..., tf.newaxis]
    heatmap = tf.squeeze(heatmap)
    heatmap = tf.maximum(heatmap, 0) / tf.math.reduce_max(heatmap)
    return heatmap.numpy(), pooled_grads


heatmap, pooled = make_gradcam_heatmap(img_array, model, "last_activation")
assert heatmap.shape == (9, 9) and np.isclose(heatmap.max(), 1), heatmap
chosen = int(np.argmax(model.predict(img_array, verbose=0)[0]))
expected = model.layers[-1].get_weights()[0][:, chosen] / 81  # behind the average stands only the dense layer
np.testing.assert_allclose(pooled.numpy(), expected, rtol=1e-4, atol=1e-7)
other, _ = make_gradcam_heatmap(img_array, model, "last_activation", pred_index=(chosen + 1) % 5)
assert other.shape == (9, 9)
print("ok")
